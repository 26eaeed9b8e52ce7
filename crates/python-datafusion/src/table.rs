//! [`Table`]: what `marq_datafusion.table` returns.

use std::sync::Arc;

use datafusion_catalog::MemTable;
use datafusion_common::DataFusionError;
use datafusion_session::TableProvider;
use marquetry::Predicate;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::capsule;
use crate::error::to_py;
use crate::files::{Files, partition_type};
use crate::session::RUNTIME;

/// Parquet files as a table of DataFusion.
#[pyclass(frozen, module = "marq_datafusion")]
pub(crate) struct Table {
    table: Arc<dyn TableProvider>,
    /// The paths, for people.
    source: String,
}

#[pymethods]
impl Table {
    /// A table of files; folders end with a slash.
    #[staticmethod]
    fn of_files(
        py: Python<'_>,
        paths: Vec<String>,
        partitions: Vec<(String, String)>,
        columns: Option<Vec<String>>,
        filter: Option<String>,
    ) -> PyResult<Self> {
        let partitions = partitions.into_iter().map(|(name, of)| match partition_type(&of) {
            Some(data_type) => Ok((name, data_type)),
            None => Err(PyValueError::new_err(format!(
                "the partition column {name} is {of:?}: int32, int64, date32 and utf8 are known"
            ))),
        });
        let partitions = partitions.collect::<PyResult<Vec<_>>>()?;
        let filter = filter.map(|text| Predicate::parse(&text)).transpose();
        let filter = filter.map_err(|e| PyValueError::new_err(e.to_string()))?;
        let opened = py.detach(|| {
            let opening =
                async { Files::open(&paths, partitions, columns.as_deref(), filter).await };
            RUNTIME.block_on(opening)
        });
        let table = Arc::new(opened.map_err(|e| to_py(&e))?);
        Ok(Self { table, source: paths.join(", ") })
    }

    /// A table of batches in memory, from the capsule of an Arrow stream.
    #[staticmethod]
    fn of_stream(py: Python<'_>, stream: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let batches = capsule::stream_of(stream)?;
        let schema = batches.schema();
        // The stream may call into Python, which takes the GIL by itself.
        let batches = py.detach(|| batches.collect::<Result<Vec<_>, _>>());
        let table = batches
            .map_err(DataFusionError::from)
            .and_then(|batches| MemTable::try_new(schema, vec![batches]));
        let table = Arc::new(table.map_err(|e| to_py(&e))?);
        Ok(Self { table, source: "batches".to_owned() })
    }

    /// The capsule that DataFusion asks for when the table is registered.
    #[pyo3(signature = (session=None))]
    fn __datafusion_table_provider__<'py>(
        &self,
        py: Python<'py>,
        session: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::of_table(Arc::clone(&self.table), session, py)
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.table.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __repr__(&self) -> String {
        format!("<marq_datafusion.Table of {}>", self.source)
    }
}
