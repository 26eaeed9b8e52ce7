//! thrift
