//! [`ArrowOptions`]: the choices of a reader for the Arrow types of columns.

use arrow_schema::{SchemaRef, TimeUnit};

use super::match_by::MatchBy;
use super::name_mapping::NameMapping;

/// Chooses how the columns of a file become Arrow fields.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use arrow_schema::DataType;
/// use marquetry::Reader;
/// use marquetry::read::ReadOptions;
/// use marquetry::schema::ArrowOptions;
///
/// let mut options = ReadOptions::default();
/// // Not as the dictionary that the writer of the file had.
/// options.arrow = ArrowOptions::new().with_hint(false).with_views(true);
/// let reader = Reader::open("testdata/trips.parquet")?.options(options);
/// let schema = reader.schema()?;
/// assert_eq!(schema.field(3).data_type(), &DataType::Utf8View);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ArrowOptions {
    pub(crate) int96: TimeUnit,
    pub(crate) views: bool,
    pub(crate) dictionaries: Dictionaries,
    pub(crate) text: TextColumns,
    pub(crate) hint: bool,
    pub(crate) hint_use: HintUse,
    pub(crate) target: Option<SchemaRef>,
    /// How fields of the target find theirs in the file.
    pub(crate) match_by: MatchBy,
    pub(crate) name_mapping: Option<NameMapping>,
}

/// The columns that are read without expanding their dictionaries, as `Dictionary(Int32, _)`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dictionaries {
    /// None, except those that a hint names.
    #[default]
    None,
    /// All strings.
    Strings,
    /// The columns with these names, looked up as
    /// [`Projection::names`](crate::schema::Projection::names) does; of a group, all its strings
    /// and byte strings.
    Named(Vec<String>),
}

/// Which BYTE_ARRAY columns without annotation are read as strings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum TextColumns {
    #[default]
    None,
    All,
    /// Looked up as the names of [`Dictionaries`] are; of a group, all below it.
    Named(Vec<String>),
}

/// How far the hint is followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum HintUse {
    #[default]
    All,
    /// As the `parquet` crate does it: list items and map entries have the names that they have in
    /// the file, and seconds that are stored as milliseconds are milliseconds.
    #[cfg(feature = "engine")]
    AsParquet,
}

impl Default for ArrowOptions {
    fn default() -> Self {
        Self {
            int96: TimeUnit::Nanosecond,
            views: false,
            dictionaries: Dictionaries::None,
            text: TextColumns::None,
            hint: true,
            hint_use: HintUse::All,
            target: None,
            match_by: MatchBy::Name,
            name_mapping: None,
        }
    }
}

impl ArrowOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Unit of the timestamps that INT96 columns become. Default nanoseconds, which end in the year
    /// 2262; files of Spark may need microseconds.
    #[must_use]
    pub fn with_int96(mut self, unit: TimeUnit) -> Self {
        self.int96 = unit;
        self
    }

    /// Reads strings and byte strings as `Utf8View` and `BinaryView`. Default false.
    #[must_use]
    pub fn with_views(mut self, views: bool) -> Self {
        self.views = views;
        self
    }

    /// Columns to read without expanding their dictionaries. Default none.
    #[must_use]
    pub fn with_dictionaries(mut self, dictionaries: Dictionaries) -> Self {
        self.dictionaries = dictionaries;
        self
    }

    /// Reads BYTE_ARRAY columns without annotation as strings, as Impala and old Spark meant them,
    /// at every depth except inside VARIANT, and ignoring the hint. Default false.
    #[must_use]
    pub fn with_binary_as_string(mut self, binary_as_string: bool) -> Self {
        self.text = if binary_as_string { TextColumns::All } else { TextColumns::None };
        self
    }

    /// Restores the Arrow types that the writer stored under `ARROW:schema`, where the annotation
    /// of the column leaves them open and no value is lost. Default true.
    #[must_use]
    pub fn with_hint(mut self, hint: bool) -> Self {
        self.hint = hint;
        self
    }

    /// Gives field ids to the fields of a file that has none, for a target that is matched by
    /// [`MatchBy::FieldId`]. Default: a file has its own alone.
    #[must_use]
    pub fn with_name_mapping(mut self, mapping: NameMapping) -> Self {
        self.name_mapping = Some(mapping);
        self
    }

    /// Sets the schema of the rows: its fields, in its order, whatever the file has.
    ///
    /// Types may be wider than those of the file, but nothing may be lost. A nullable field that
    /// the file does not have is all null, also inside structs, lists and maps. A field that may be
    /// null in the file must be nullable in the target. Only the target decides the types: the hint
    /// and the other options except `int96`, `match_by` and the name mapping are ignored. A
    /// projection then chooses among the fields of the target.
    #[must_use]
    pub fn with_target(mut self, target: SchemaRef, match_by: MatchBy) -> Self {
        self.target = Some(target);
        self.match_by = match_by;
        self
    }
}

/// Options for engines that map schemas by another implementation too.
#[cfg(feature = "engine")]
impl ArrowOptions {
    /// Applies the hint of the writer only as far as the `parquet` crate does: list items and map
    /// entries have the names that they have in the file, and seconds that are stored as
    /// milliseconds stay milliseconds.
    #[must_use]
    pub fn with_hint_as_parquet(mut self) -> Self {
        self.hint_use = HintUse::AsParquet;
        self
    }

    /// Reads these BYTE_ARRAY columns without annotation as strings, and no others; a group stands
    /// for all columns below it.
    #[must_use]
    pub fn with_text_columns(mut self, names: Vec<String>) -> Self {
        self.text = TextColumns::Named(names);
        self
    }
}
