//! Runs a scan of ours on a cluster: here two workers of datafusion-distributed in this process. On
//! machines of their own, run `worker` on each, and name their URLs in `Workers`.
//!
//! In `crates/datafusion/tests/engines`:
//! `cargo run --example datafusion_distributed -- FILE.parquet`.

use datafusion::error::Result;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::{
    DistributedExt, SessionStateBuilderExt, Worker, WorkerQueryContext, WorkerResolver,
    display_plan_ascii,
};
use marquetry_datafusion::MarquetryPhysicalCodec;
use tokio::net::TcpListener;
use tonic::transport::Server;
use url::Url;

struct Workers(Vec<Url>);

impl WorkerResolver for Workers {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}

/// Workers need our codec, too.
async fn session(context: WorkerQueryContext) -> Result<SessionState> {
    Ok(context.builder.with_distributed_user_codec(MarquetryPhysicalCodec).build())
}

async fn worker() -> std::io::Result<Url> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let service = Worker::from_session_builder(session).into_worker_server();
    let accept = |listener: TcpListener| async {
        Some((listener.accept().await.map(|(stream, _)| stream), listener))
    };
    let incoming = Box::pin(futures::stream::unfold(listener, accept));
    tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
    Ok(url.parse().expect("a URL"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let given = std::env::args().nth(1);
    let path = given.unwrap_or_else(|| "../../../../testdata/trips.parquet".to_owned());
    let state = SessionStateBuilder::new_with_default_features()
        .with_config(SessionConfig::new().with_target_partitions(2))
        .with_distributed_worker_resolver(Workers(vec![worker().await?, worker().await?]))
        .with_distributed_user_codec(MarquetryPhysicalCodec)
        .with_distributed_planner()
        .with_distributed_file_scan_config_bytes_per_partition(1)?
        .build();
    let ctx = SessionContext::new_with_state(state);
    marquetry_datafusion::install!(&ctx)?;
    let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{path}'");
    ctx.sql(&create).await?;
    let query = ctx.sql("SELECT vendor, count(*) FROM t GROUP BY vendor ORDER BY vendor").await?;
    let plan = query.clone().create_physical_plan().await?;
    println!("{}", display_plan_ascii(plan.as_ref(), false));
    query.show().await
}
