//! Encodes and decodes our scans, sinks and tables in the plans that distributed engines send.
//!
//! ```text
//!  | MQSCAN1 | a ParquetScanExecNode, as DataFusion writes its own, and what it has no place for |
//!  | MQSINK1 | a ParquetSinkExecNode without its input |
//!  | MQTABL1 | a table, or a format; only where messages of another codec come the same way |
//!    7 bytes   protobuf
//! ```
//!
//! A scan travels in the message that DataFusion has for its own Parquet scan, wrapped so that our
//! codec reads it back as ours. A worker without the codec says that it does not know the node.
//! With [`ScanSettings::with_portable_plans`] the message travels unwrapped: every worker
//! understands it, as a scan of DataFusion's own source.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef, SortOptions};
use datafusion_common::config::TableParquetOptions;
use datafusion_common::{DataFusionError, Result, TableReference, internal_err};
use datafusion_datasource::ListingTableUrl;
use datafusion_datasource::file::FileSource;
use datafusion_datasource::file_format::FileFormatFactory;
use datafusion_datasource::file_scan_config::FileScanConfig;
use datafusion_datasource::file_sink_config::{FileSink, FileSinkConfig};
use datafusion_datasource::sink::DataSinkExec;
use datafusion_datasource::source::DataSourceExec;
use datafusion_execution::TaskContext;
use datafusion_expr::logical_plan::{Extension, LogicalPlan};
use datafusion_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_expr_common::physical_expr::proto_decode::PhysicalExprDecodeCtx;
use datafusion_physical_expr_common::physical_expr::proto_encode::PhysicalExprEncodeCtx;
use datafusion_physical_expr_common::sort_expr::{
    LexOrdering, LexRequirement, PhysicalSortExpr, PhysicalSortRequirement,
};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::from_proto::parse_protobuf_file_scan_config;
use datafusion_proto::physical_plan::to_proto::serialize_file_scan_config;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf;
use datafusion_session::TableProvider;
use prost::Message;

use crate::format::{MarquetryFormat, MarquetryFormatFactory, sink_of};
use crate::row_groups::ReadOrder;
use crate::settings::ScanSettings;
use crate::sink::MarquetrySink;
use crate::source::{MarquetrySource, check_travel};
use crate::statistics::saturated;
use crate::table::MarquetryTable;
use marquetry::Limits;

/// Carries scans and sinks of this crate in physical plans.
///
/// Give it to the coordinator and to all workers, for datafusion-distributed with
/// `with_distributed_user_codec(MarquetryPhysicalCodec)`. For an engine that takes one codec and
/// has nodes of its own, such as Ballista, put it in front of the engine's codec with
/// [`MarquetryCodecWith`].
#[derive(Debug, Clone, Copy, Default)]
pub struct MarquetryPhysicalCodec;

const SCAN: &[u8] = b"MQSCAN1";
const SINK: &[u8] = b"MQSINK1";

/// A scan: that of DataFusion's own source, and what it has no place for.
#[derive(Clone, PartialEq, Message)]
struct ScanMessage {
    #[prost(message, optional, tag = "1")]
    scan: Option<protobuf::ParquetScanExecNode>,
    #[prost(bool, tag = "2")]
    pushdown: bool,
    /// The order in which row groups are read.
    #[prost(message, optional, tag = "3")]
    order: Option<protobuf::PhysicalSortExprNodeCollection>,
    #[prost(bool, tag = "4")]
    is_reversed: bool,
    #[prost(message, optional, tag = "5")]
    limits: Option<LimitsMessage>,
}

/// The limits of what files may make a read allocate. A missing field has its default, and so have
/// all in messages of versions that did not send them.
#[derive(Clone, PartialEq, Message)]
struct LimitsMessage {
    #[prost(uint64, optional, tag = "1")]
    footer_bytes: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    page_bytes: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    nesting: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    rows_without_columns: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    memory_bytes: Option<u64>,
}

impl LimitsMessage {
    /// `None` for the limits that a worker has by default.
    fn new(limits: &Limits) -> Option<Self> {
        let Limits {
            footer_bytes, page_bytes, nesting, rows_without_columns, memory_bytes, ..
        } = *limits;
        (*limits != Limits::default()).then_some(Self {
            footer_bytes: Some(footer_bytes),
            page_bytes: Some(page_bytes),
            nesting: Some(nesting as u64),
            rows_without_columns: Some(rows_without_columns),
            memory_bytes: Some(memory_bytes),
        })
    }

    /// The limits of a message. Any numbers will do: none is allocated by itself, and the nesting
    /// is capped by the stack wherever it is used.
    fn limits(message: Option<&Self>) -> Limits {
        let mut limits = Limits::default();
        let Some(message) = message else { return limits };
        let numbers = [
            (&mut limits.footer_bytes, message.footer_bytes),
            (&mut limits.page_bytes, message.page_bytes),
            (&mut limits.rows_without_columns, message.rows_without_columns),
            (&mut limits.memory_bytes, message.memory_bytes),
        ];
        for (limit, sent) in numbers {
            *limit = sent.unwrap_or(*limit);
        }
        limits.nesting = message.nesting.map_or(limits.nesting, saturated);
        limits
    }
}

impl PhysicalExtensionCodec for MarquetryPhysicalCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        decode_node(buf, inputs, context, self, converter).unwrap_or_else(|| {
            Err(DataFusionError::NotImplemented(
                "marquetry: a plan node that is none of its own".to_owned(),
            ))
        })
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        encode_node(&node, buf, self, converter).unwrap_or_else(|| {
            let name = node.name();
            Err(DataFusionError::NotImplemented(format!("marquetry: {name} is none of its nodes")))
        })
    }
}

/// Encodes a node of ours; `None`, and nothing written, if it is none. Expressions in it go through
/// `codec`, which is that of the whole plan.
fn encode_node(
    node: &Arc<dyn ExecutionPlan>,
    buf: &mut Vec<u8>,
    codec: &dyn PhysicalExtensionCodec,
    converter: &dyn PhysicalProtoConverterExtension,
) -> Option<Result<()>> {
    if let Some(node) = node.downcast_ref::<DataSinkExec>() {
        let sink = node.sink().downcast_ref::<MarquetrySink>()?;
        return Some(encode_sink(node, sink, buf, codec, converter));
    }
    let scan = node.downcast_ref::<DataSourceExec>()?;
    let (config, source) = scan.downcast_to_file_source::<MarquetrySource>()?;
    Some(encode_scan(config, source, buf, codec, converter))
}

/// Decodes a node of ours; `None` for messages that [`encode_node`] has not written.
fn decode_node(
    buf: &[u8],
    inputs: &[Arc<dyn ExecutionPlan>],
    context: &TaskContext,
    codec: &dyn PhysicalExtensionCodec,
    converter: &dyn PhysicalProtoConverterExtension,
) -> Option<Result<Arc<dyn ExecutionPlan>>> {
    let decoding = PhysicalPlanDecodeContext::new(context, codec);
    if let Some(message) = buf.strip_prefix(SCAN) {
        return Some(guarded(|| decode_scan(message, &decoding, converter)));
    }
    let message = buf.strip_prefix(SINK)?;
    Some(guarded(|| decode_sink(message, inputs, &decoding, converter)))
}

fn encode_scan(
    config: &FileScanConfig,
    source: &MarquetrySource,
    buf: &mut Vec<u8>,
    codec: &dyn PhysicalExtensionCodec,
    converter: &dyn PhysicalProtoConverterExtension,
) -> Result<()> {
    check_travel(config)?;
    let settings = source.settings();
    let base = serialize_file_scan_config(config, codec, converter)?;
    let filter = source.filter();
    let filter = filter.map(|filter| converter.physical_expr_to_proto(&filter, codec));
    let scan = protobuf::ParquetScanExecNode {
        base_conf: Some(base),
        predicate: filter.transpose()?,
        parquet_options: Some(settings.options().try_into()?),
    };
    let order = source.read_order();
    let keys = order.by_bounds.as_ref().map(|keys| encode_keys(keys.iter(), codec, converter));
    let message = ScanMessage {
        scan: Some(scan),
        pushdown: settings.is_pushdown(),
        order: keys.transpose()?,
        is_reversed: order.is_reversed,
        limits: LimitsMessage::new(settings.limits()),
    };
    buf.extend_from_slice(SCAN);
    message.encode(buf).map_err(external)
}

fn encode_keys<'a>(
    keys: impl Iterator<Item = &'a PhysicalSortExpr>,
    codec: &dyn PhysicalExtensionCodec,
    converter: &dyn PhysicalProtoConverterExtension,
) -> Result<protobuf::PhysicalSortExprNodeCollection> {
    let key = |key: &PhysicalSortExpr| {
        let expr = converter.physical_expr_to_proto(&key.expr, codec)?;
        let SortOptions { descending, nulls_first } = key.options;
        let expr = Some(Box::new(expr));
        Ok(protobuf::PhysicalSortExprNode { expr, asc: !descending, nulls_first })
    };
    let physical_sort_expr_nodes = keys.map(key).collect::<Result<_>>()?;
    Ok(protobuf::PhysicalSortExprNodeCollection { physical_sort_expr_nodes })
}

fn decode_keys(
    keys: Option<&protobuf::PhysicalSortExprNodeCollection>,
    schema: &Schema,
    decoding: &PhysicalPlanDecodeContext<'_>,
    converter: &dyn PhysicalProtoConverterExtension,
) -> Result<Vec<PhysicalSortExpr>> {
    let key = |key: &protobuf::PhysicalSortExprNode| {
        let Some(expr) = &key.expr else {
            return internal_err!("marquetry: a sort key without its expression");
        };
        let expr = converter.proto_to_physical_expr(expr, schema, decoding)?;
        let options = SortOptions { descending: !key.asc, nulls_first: key.nulls_first };
        Ok(PhysicalSortExpr::new(expr, options))
    };
    keys.into_iter().flat_map(|keys| &keys.physical_sort_expr_nodes).map(key).collect()
}

fn encode_sink(
    node: &DataSinkExec,
    sink: &MarquetrySink,
    buf: &mut Vec<u8>,
    codec: &dyn PhysicalExtensionCodec,
    converter: &dyn PhysicalProtoConverterExtension,
) -> Result<()> {
    let keys = node.sort_order().as_ref().map(|order| {
        let keys: Vec<_> = order.iter().cloned().map(PhysicalSortExpr::from).collect();
        encode_keys(keys.iter(), codec, converter)
    });
    let message = protobuf::ParquetSinkExecNode {
        // The engine carries the input beside the node.
        input: None,
        sink: Some(protobuf::ParquetSink {
            config: Some(sink.config().try_into()?),
            parquet_options: Some(sink.options().try_into()?),
        }),
        sink_schema: None,
        sort_order: keys.transpose()?,
    };
    buf.extend_from_slice(SINK);
    message.encode(buf).map_err(external)
}

fn decode_scan(
    message: &[u8],
    decoding: &PhysicalPlanDecodeContext<'_>,
    converter: &dyn PhysicalProtoConverterExtension,
) -> Result<Arc<dyn ExecutionPlan>> {
    let message = ScanMessage::decode(message).map_err(external)?;
    let Some((scan, base)) =
        message.scan.as_ref().and_then(|scan| Some((scan, scan.base_conf.as_ref()?)))
    else {
        return internal_err!("marquetry: a scan without its files");
    };
    let table = datafusion_proto::physical_plan::from_proto::parse_table_schema_from_proto(base)?;
    let schema = Arc::clone(table.table_schema());
    let by_bounds =
        LexOrdering::new(decode_keys(message.order.as_ref(), &schema, decoding, converter)?);
    let mut settings = ScanSettings::new()
        .with_pushdown(message.pushdown)
        .with_limits(LimitsMessage::limits(message.limits.as_ref()));
    if let Some(options) = &scan.parquet_options {
        settings = settings.with_options(options.try_into()?);
    }
    let mut source = MarquetrySource::new(table)
        .with_settings(settings)
        .with_read_order(ReadOrder { by_bounds, is_reversed: message.is_reversed });
    if let Some(filter) = &scan.predicate {
        let filter = converter.proto_to_physical_expr(filter, &schema, decoding)?;
        // Such a filter is not planned, and in some builds DataFusion panics at it.
        let found = filter.data_type(&schema)?;
        if found != DataType::Boolean {
            return internal_err!("marquetry: a filter of type {found}, not Boolean: {filter}");
        }
        source = source.with_filter(filter);
    }
    let context = decoding.task_ctx();
    let cache = context.runtime_env().cache_manager.get_file_metadata_cache();
    let pool = Arc::clone(context.memory_pool());
    let source = Arc::new(source.with_metadata_cache(cache).with_memory_pool(pool));
    let config = parse_protobuf_file_scan_config(base, decoding, converter, source)?;
    Ok(DataSourceExec::from_data_source(config))
}

fn decode_sink(
    message: &[u8],
    inputs: &[Arc<dyn ExecutionPlan>],
    decoding: &PhysicalPlanDecodeContext<'_>,
    converter: &dyn PhysicalProtoConverterExtension,
) -> Result<Arc<dyn ExecutionPlan>> {
    let message = protobuf::ParquetSinkExecNode::decode(message).map_err(external)?;
    let parts = message.sink.and_then(|sink| Some((sink.config?, sink.parquet_options?)));
    let (Some((config, options)), [input]) = (parts, inputs) else {
        return internal_err!("marquetry: a sink without its configuration or its input");
    };
    let schema = input.schema();
    let keys = decode_keys(message.sort_order.as_ref(), &schema, decoding, converter)?;
    let order = LexRequirement::new(keys.into_iter().map(PhysicalSortRequirement::from));
    let config = FileSinkConfig::try_from(&config)?;
    sink_of(config, TableParquetOptions::try_from(&options)?, Arc::clone(input), order)
}

/// Carries tables and file formats of this crate in logical plans.
#[derive(Debug, Clone, Copy, Default)]
pub struct MarquetryLogicalCodec;

/// A table, or a format alone.
#[derive(Clone, PartialEq, Message)]
struct TableMessage {
    #[prost(string, repeated, tag = "1")]
    paths: Vec<String>,
    /// Names and types of partition columns.
    #[prost(message, optional, tag = "2")]
    partitions: Option<protobuf::Schema>,
    #[prost(message, optional, tag = "3")]
    options: Option<datafusion_proto::generated::datafusion_common::TableParquetOptions>,
    #[prost(bool, tag = "4")]
    pushdown: bool,
    #[prost(bool, tag = "5")]
    portable: bool,
    #[prost(message, optional, tag = "6")]
    limits: Option<LimitsMessage>,
    /// The pattern below each path, empty where there is none; none at all if no path has one.
    #[prost(string, repeated, tag = "7")]
    patterns: Vec<String>,
}

impl TableMessage {
    /// The settings alone, with options if they are not those of the session.
    fn new(settings: &ScanSettings, options: Option<&TableParquetOptions>) -> Result<Self> {
        Ok(Self {
            options: options.map(TryInto::try_into).transpose()?,
            pushdown: settings.is_pushdown(),
            portable: settings.is_portable(),
            limits: LimitsMessage::new(settings.limits()),
            ..Self::default()
        })
    }

    /// The settings, without options.
    fn settings(&self) -> ScanSettings {
        ScanSettings::new()
            .with_pushdown(self.pushdown)
            .with_limits(LimitsMessage::limits(self.limits.as_ref()))
            .with_portable_plans(self.portable)
    }
}

impl LogicalExtensionCodec for MarquetryLogicalCodec {
    fn try_decode(
        &self,
        _buf: &[u8],
        _inputs: &[LogicalPlan],
        _context: &TaskContext,
    ) -> Result<Extension> {
        Err(DataFusionError::NotImplemented("marquetry has no logical plan nodes".to_owned()))
    }

    fn try_encode(&self, node: &Extension, _buf: &mut Vec<u8>) -> Result<()> {
        let name = node.node.name();
        Err(DataFusionError::NotImplemented(format!("marquetry: {name} is none of its nodes")))
    }

    fn try_decode_table_provider(
        &self,
        buf: &[u8],
        _table: &TableReference,
        schema: SchemaRef,
        _context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        guarded(|| decode_table(buf, &schema))
    }

    fn try_encode_table_provider(
        &self,
        table: &TableReference,
        node: Arc<dyn TableProvider>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(found) = node.downcast_ref::<MarquetryTable>() else {
            return Err(DataFusionError::NotImplemented(format!(
                "marquetry: the table {table} is none of its tables"
            )));
        };
        let field = |(name, data_type): &(String, _)| {
            arrow_schema::Field::new(name, Clone::clone(data_type), false)
        };
        let partitions = Schema::new(found.partitions().iter().map(field).collect::<Vec<_>>());
        let pattern = |path: &ListingTableUrl| path.get_glob().as_ref().map(ToString::to_string);
        let patterns: Vec<_> = found.paths().iter().map(pattern).collect();
        let has_patterns = patterns.iter().any(Option::is_some);
        let patterns = patterns.into_iter().map(Option::unwrap_or_default);
        let settings = found.format().settings();
        let message = TableMessage {
            paths: found.paths().iter().map(ToString::to_string).collect(),
            patterns: if has_patterns { patterns.collect() } else { Vec::new() },
            partitions: Some((&partitions).try_into()?),
            ..TableMessage::new(settings, Some(settings.options()))?
        };
        message.encode(buf).map_err(external)
    }

    fn try_decode_file_format(
        &self,
        buf: &[u8],
        _context: &TaskContext,
    ) -> Result<Arc<dyn FileFormatFactory>> {
        guarded(|| decode_factory(buf))
    }

    fn try_encode_file_format(
        &self,
        buf: &mut Vec<u8>,
        node: Arc<dyn FileFormatFactory>,
    ) -> Result<()> {
        let Some(factory) = node.downcast_ref::<MarquetryFormatFactory>() else {
            return Err(DataFusionError::NotImplemented(
                "marquetry: a file format that is none of its formats".to_owned(),
            ));
        };
        let message = TableMessage::new(factory.settings(), factory.options())?;
        message.encode(buf).map_err(external)
    }
}

fn decode_table(buf: &[u8], schema: &SchemaRef) -> Result<Arc<dyn TableProvider>> {
    let message = TableMessage::decode(buf).map_err(external)?;
    let partitions: Schema = match &message.partitions {
        Some(partitions) => partitions.try_into()?,
        None => Schema::empty(),
    };
    let is_of_file = |name: &str| partitions.field_with_name(name).is_err();
    let fields: Vec<_> =
        schema.fields().iter().filter(|field| is_of_file(field.name())).cloned().collect();
    let of_file = Schema::new_with_metadata(fields, schema.metadata().clone());
    let partitions = partitions.fields().iter();
    let partitions = partitions.map(|field| (field.name().clone(), field.data_type().clone()));
    let mut settings = message.settings();
    if let Some(options) = &message.options {
        settings = settings.with_options(options.try_into()?);
    }
    let format = MarquetryFormat::new().with_settings(settings);
    let path = |(at, path): (usize, &String)| {
        let url = ListingTableUrl::parse(path)?;
        match message.patterns.get(at).filter(|pattern| !pattern.is_empty()) {
            Some(pattern) => url.with_glob(pattern),
            None => Ok(url),
        }
    };
    let urls = message.paths.iter().enumerate().map(path).collect::<Result<Vec<_>>>()?;
    let table = MarquetryTable::from_urls(Arc::new(of_file), &urls, partitions.collect(), format)?;
    Ok(Arc::new(table))
}

fn decode_factory(buf: &[u8]) -> Result<Arc<dyn FileFormatFactory>> {
    let message = TableMessage::decode(buf).map_err(external)?;
    let mut factory = MarquetryFormatFactory::new().with_settings(message.settings());
    if let Some(options) = &message.options {
        factory = factory.with_options(options.try_into()?);
    }
    Ok(Arc::new(factory))
}

/// The codecs of this crate in front of those of an engine that has nodes of its own, such as
/// Ballista.
///
/// Scans, sinks, tables and file formats of this crate travel as [`MarquetryPhysicalCodec`] and
/// [`MarquetryLogicalCodec`] write them, functions and all that is left as the engine's own codec
/// writes it: its messages stay as they are. Client, scheduler and executors all need it:
///
/// ```ignore
/// let config = SessionConfig::new_with_ballista();
/// let logical = MarquetryCodecWith::new(config.ballista_logical_extension_codec());
/// let physical = MarquetryCodecWith::new(config.ballista_physical_extension_codec());
/// let config = config
///     .with_ballista_logical_extension_codec(Arc::new(logical))
///     .with_ballista_physical_extension_codec(Arc::new(physical));
/// ```
///
/// A logical plan carries a [`MarquetryTable`]. A listing table of DataFusion, such as `CREATE
/// EXTERNAL TABLE` makes it, travels in a logical plan only with a format of DataFusion's own.
pub struct MarquetryCodecWith<C: ?Sized> {
    engine: Arc<C>,
}

impl<C: ?Sized> MarquetryCodecWith<C> {
    /// Leaves messages of other crates to `engine`.
    pub fn new(engine: Arc<C>) -> Self {
        Self { engine }
    }
}

impl<C: ?Sized> Clone for MarquetryCodecWith<C> {
    fn clone(&self) -> Self {
        Self { engine: Arc::clone(&self.engine) }
    }
}

impl<C: fmt::Debug + ?Sized> fmt::Debug for MarquetryCodecWith<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MarquetryCodecWith").field("engine", &&*self.engine).finish()
    }
}

/// The functions of users, which both kinds of codecs leave to that of the engine.
macro_rules! functions_of_engine {
    () => {
        functions_of_engine! {
            ScalarUDF, try_decode_udf, try_encode_udf;
            HigherOrderUDF, try_decode_higher_order_function, try_encode_higher_order_function;
            AggregateUDF, try_decode_udaf, try_encode_udaf;
            WindowUDF, try_decode_udwf, try_encode_udwf;
        }
    };
    ($($Function:ty, $decode:ident, $encode:ident;)*) => {$(
        fn $decode(&self, name: &str, buf: &[u8]) -> Result<Arc<$Function>> {
            self.engine.$decode(name, buf)
        }

        fn $encode(&self, node: &$Function, buf: &mut Vec<u8>) -> Result<()> {
            self.engine.$encode(node, buf)
        }
    )*};
}

impl<C: PhysicalExtensionCodec + ?Sized> PhysicalExtensionCodec for MarquetryCodecWith<C> {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        decode_node(buf, inputs, context, self, converter)
            .unwrap_or_else(|| self.engine.try_decode(buf, inputs, context, converter))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        encode_node(&node, buf, self, converter)
            .unwrap_or_else(|| self.engine.try_encode(node, buf, converter))
    }

    functions_of_engine!();

    fn try_decode_expr(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn PhysicalExpr>],
        context: &PhysicalExprDecodeCtx<'_>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        self.engine.try_decode_expr(buf, inputs, context)
    }

    fn try_encode_expr(
        &self,
        node: &Arc<dyn PhysicalExpr>,
        buf: &mut Vec<u8>,
        context: &PhysicalExprEncodeCtx<'_>,
    ) -> Result<()> {
        self.engine.try_encode_expr(node, buf, context)
    }
}

/// The mark of a message of [`MarquetryLogicalCodec`] among those of another codec.
const TABLE: &[u8] = b"MQTABL1";

impl<C: LogicalExtensionCodec + ?Sized> LogicalExtensionCodec for MarquetryCodecWith<C> {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[LogicalPlan],
        context: &TaskContext,
    ) -> Result<Extension> {
        self.engine.try_decode(buf, inputs, context)
    }

    fn try_encode(&self, node: &Extension, buf: &mut Vec<u8>) -> Result<()> {
        self.engine.try_encode(node, buf)
    }

    fn try_decode_table_provider(
        &self,
        buf: &[u8],
        table: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        match buf.strip_prefix(TABLE) {
            Some(message) => {
                MarquetryLogicalCodec.try_decode_table_provider(message, table, schema, context)
            }
            None => self.engine.try_decode_table_provider(buf, table, schema, context),
        }
    }

    fn try_encode_table_provider(
        &self,
        table: &TableReference,
        node: Arc<dyn TableProvider>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        if !node.is::<MarquetryTable>() {
            return self.engine.try_encode_table_provider(table, node, buf);
        }
        buf.extend_from_slice(TABLE);
        MarquetryLogicalCodec.try_encode_table_provider(table, node, buf)
    }

    fn try_decode_file_format(
        &self,
        buf: &[u8],
        context: &TaskContext,
    ) -> Result<Arc<dyn FileFormatFactory>> {
        match buf.strip_prefix(TABLE) {
            Some(message) => MarquetryLogicalCodec.try_decode_file_format(message, context),
            None => self.engine.try_decode_file_format(buf, context),
        }
    }

    fn try_encode_file_format(
        &self,
        buf: &mut Vec<u8>,
        node: Arc<dyn FileFormatFactory>,
    ) -> Result<()> {
        if !node.is::<MarquetryFormatFactory>() {
            return self.engine.try_encode_file_format(buf, node);
        }
        buf.extend_from_slice(TABLE);
        MarquetryLogicalCodec.try_encode_file_format(buf, node)
    }

    functions_of_engine!();
}

/// Decodes what a peer has sent. DataFusion's part of that panics at numbers and texts which it
/// would not have written itself.
fn guarded<T>(decode: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        internal_err!("marquetry: a message that DataFusion cannot decode: {text}")
    })
}

fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
