//! Faults of sinks below the writers: what becomes visible is a whole file or nothing, and an error
//! says so; after it the writer refuses.

use bytes::Bytes;
use fastrand::Rng;
use marquetry::{AsyncWriter, Error, ErrorKind, Reader, Result, RowGroupEncoder, Writer};

use super::{ROWS, options};
use crate::support::faults::{FaultSink, Markers, SinkFault, poll_some};
use crate::support::generate::every_case;
use crate::support::mutants::paths::block_on;
use crate::support::numbered::{numbers, rows};

static REACHED: Markers = Markers::new();

const MARKERS: [&str; 11] = [
    "a whole file",
    "an error, and no file",
    "an error of the end, and a whole file",
    "the disk is full",
    "broken in the middle of bytes",
    "it could not be made whole",
    "cancelled while writing",
    "cancelled while finishing",
    "a cancelled writer refuses",
    "aborted",
    "dropped unfinished",
];

fn fault(rng: &mut Rng) -> SinkFault {
    match rng.u8(..6) {
        0 => SinkFault::None,
        1 => SinkFault::Once(rng.usize(..12)),
        2 => SinkFault::Broken(rng.usize(..12)),
        3 => SinkFault::Full(rng.usize(..12_000)),
        4 => SinkFault::Finish,
        _ => SinkFault::FinishedAndLost,
    }
}

fn encoder(threads: usize) -> RowGroupEncoder {
    let encoder = RowGroupEncoder::new(rows(0, 1).schema(), options());
    encoder.and_then(|encoder| encoder.with_threads(threads)).expect("an encoder")
}

/// Checks what became visible, and how the writer ended, if it did.
fn account(sink: &FaultSink, fault: SinkFault, ended: Option<&Result<()>>) {
    let written = sink.written();
    if let Some(file) = &written.published {
        let reader = Reader::new(Bytes::from(file.clone())).expect("a whole file");
        assert_eq!(numbers(&reader).expect("rows"), Vec::from_iter(0..ROWS));
    }
    match ended {
        Some(Ok(())) => {
            assert!(!written.failed && written.published.is_some(), "{fault:?}: {written:?}");
            REACHED.reach("a whole file");
        }
        Some(Err(error)) => {
            assert!(written.failed, "{fault:?}: {error}");
            let lost = written.published.is_some();
            assert!(!lost || fault == SinkFault::FinishedAndLost, "{fault:?}: {error}");
            let name = if lost {
                "an error of the end, and a whole file"
            } else {
                "an error, and no file"
            };
            REACHED.reach(name);
            REACHED.reach_if(matches!(fault, SinkFault::Full(_)), "the disk is full");
            REACHED
                .reach_if(matches!(fault, SinkFault::Broken(_)), "broken in the middle of bytes");
            REACHED.reach_if(fault == SinkFault::Finish, "it could not be made whole");
        }
        None => {}
    }
}

fn blocking(rng: &mut Rng, threads: usize) {
    let fault = fault(rng);
    let sink = FaultSink::new(fault);
    let mut writer = Writer::over(sink.clone(), encoder(threads));
    let mut first: Option<Error> = None;
    let mut from = 0;
    while from < ROWS {
        let n = rng.i64(1..90).min(ROWS - from);
        let done = if rng.u8(..6) == 0 { writer.flush() } else { Ok(()) };
        match (done.and_then(|()| writer.write(&rows(from, n))), &first) {
            (Ok(()), None) => {}
            (Ok(()), Some(first)) => panic!("it works after {first}"),
            (Err(error), Some(_)) => assert_eq!(error.kind(), ErrorKind::Usage, "{error}"),
            (Err(error), None) => first = Some(error),
        }
        from += n;
    }
    if rng.u8(..8) == 0 {
        drop(writer);
        assert!(sink.written().published.is_none(), "it was not finished");
        return REACHED.reach("dropped unfinished");
    }
    let finished = writer.finish().map(drop);
    let ended = match first {
        Some(error) => {
            assert!(finished.is_err(), "it is finished after {error}");
            Err(error)
        }
        None => finished,
    };
    account(&sink, fault, Some(&ended));
}

async fn write_all(writer: &mut AsyncWriter<FaultSink>, mut rng: Rng) -> Result<()> {
    let mut from = 0;
    while from < ROWS {
        let n = rng.i64(1..90).min(ROWS - from);
        if rng.u8(..6) == 0 {
            writer.flush().await?;
        }
        writer.write(&rows(from, n)).await?;
        from += n;
    }
    Ok(())
}

/// Asynchronous; perhaps dropped at some await.
fn asynchronous(rng: &mut Rng, threads: usize, is_cancelled: bool) {
    let fault = fault(rng);
    let mut sink = FaultSink::new(fault);
    sink.late = rng.u32(..4);
    let mut writer = AsyncWriter::over(sink.clone(), encoder(threads));
    let polls = if is_cancelled { rng.u32(..80) } else { u32::MAX };
    let writing = write_all(&mut writer, rng.fork());
    let done = if is_cancelled { poll_some(polls, writing) } else { Some(block_on(writing)) };
    let Some(done) = done else {
        REACHED.reach("cancelled while writing");
        return after_cancelling(rng, writer, &sink, fault);
    };
    if done.is_ok() && rng.u8(..8) == 0 {
        block_on(writer.abort()).expect("an end");
        assert!(sink.written().published.is_none() && sink.written().aborted);
        return REACHED.reach("aborted");
    }
    let finishing = writer.finish();
    let finished = match is_cancelled {
        true => poll_some(rng.u32(..30), finishing),
        false => Some(block_on(finishing)),
    };
    let Some(finished) = finished else {
        REACHED.reach("cancelled while finishing");
        return account(&sink, fault, None);
    };
    let ended = match done {
        Err(error) => {
            assert!(finished.is_err(), "it is finished after {error}");
            assert!(sink.written().aborted, "it was not aborted");
            Err(error)
        }
        Ok(()) => finished.map(drop),
    };
    account(&sink, fault, Some(&ended));
}

/// A writer may have lost the rows of a call that was dropped: if it refuses, there is no file. If
/// the call was dropped before it began, it goes on.
fn after_cancelling(
    rng: &mut Rng,
    mut writer: AsyncWriter<FaultSink>,
    sink: &FaultSink,
    fault: SinkFault,
) {
    let next = if rng.bool() { block_on(writer.flush()) } else { Ok(()) };
    if let Err(error) = &next {
        REACHED.reach_if(error.kind() == ErrorKind::Usage, "a cancelled writer refuses");
        assert!(block_on(writer.finish()).is_err(), "it is finished after {error}");
        return account(sink, fault, None);
    }
    drop(writer);
    assert!(sink.written().published.is_none(), "it was not finished");
    REACHED.reach("dropped unfinished");
}

#[test]
fn whatever_a_sink_does_a_file_is_whole_or_not_there() {
    let cases = every_case(2000, |seed| {
        let rng = &mut Rng::with_seed(seed);
        match seed % 6 {
            0 => blocking(rng, 1),
            1 => blocking(rng, 2),
            2 => asynchronous(rng, 1, false),
            3 => asynchronous(rng, 2, false),
            4 => asynchronous(rng, 1, true),
            _ => asynchronous(rng, 2, true),
        }
    });
    if cases >= 2000 {
        REACHED.assert_reached(&MARKERS);
    }
}
