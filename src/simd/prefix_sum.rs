//! Running sums: the second half of DELTA decoding.
//!
//! Blocks of 8 are summed in themselves first, so that the chain from value to value is one addition a block, not one a value.

/// Turns `deltas` into the running sums that begin behind `last`, each with `step` added; gives the last sum. All of it wraps.
pub fn prefix_sum_i64(deltas: &[u64], step: i64, last: i64, out: &mut Vec<i64>) -> i64 {
    let mut last = last;
    let (blocks, rest) = deltas.as_chunks::<8>();
    for block in blocks {
        let mut sums = [0i64; 8];
        for (sum, delta) in sums.iter_mut().zip(block) {
            *sum = delta.cast_signed().wrapping_add(step);
        }
        for distance in [1, 2, 4] {
            let before = sums;
            for i in distance..8 {
                sums[i] = before[i].wrapping_add(before[i - distance]);
            }
        }
        for sum in &mut sums {
            *sum = sum.wrapping_add(last);
        }
        last = sums[7];
        out.extend_from_slice(&sums);
    }
    for delta in rest {
        last = last.wrapping_add(delta.cast_signed()).wrapping_add(step);
        out.push(last);
    }
    last
}

/// As [`prefix_sum_i64`], with 32 bits.
pub fn prefix_sum_i32(deltas: &[u32], step: i32, last: i32, out: &mut Vec<i32>) -> i32 {
    let mut last = last;
    let (blocks, rest) = deltas.as_chunks::<8>();
    for block in blocks {
        let mut sums = [0i32; 8];
        for (sum, delta) in sums.iter_mut().zip(block) {
            *sum = delta.cast_signed().wrapping_add(step);
        }
        for distance in [1, 2, 4] {
            let before = sums;
            for i in distance..8 {
                sums[i] = before[i].wrapping_add(before[i - distance]);
            }
        }
        for sum in &mut sums {
            *sum = sum.wrapping_add(last);
        }
        last = sums[7];
        out.extend_from_slice(&sums);
    }
    for delta in rest {
        last = last.wrapping_add(delta.cast_signed()).wrapping_add(step);
        out.push(last);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_as_the_naive_twin_and_wraps() {
        let seed = 14;
        let mut rng = fastrand::Rng::with_seed(seed);
        for n in 0..40 {
            let deltas: Vec<u64> = (0..n).map(|_| rng.u64(..)).collect();
            let (step, first) = (rng.i64(..), rng.i64(..));
            let mut out = vec![7];
            let last = prefix_sum_i64(&deltas, step, first, &mut out);
            let mut sum = first;
            let expected: Vec<i64> = deltas
                .iter()
                .map(|d| {
                    sum = sum.wrapping_add(*d as i64).wrapping_add(step);
                    sum
                })
                .collect();
            assert_eq!((out[1..].to_vec(), last), (expected, sum), "seed {seed}");

            let deltas: Vec<u32> = (0..n).map(|_| rng.u32(..)).collect();
            let (step, first) = (rng.i32(..), rng.i32(..));
            let mut out = vec![7];
            let last = prefix_sum_i32(&deltas, step, first, &mut out);
            let mut sum = first;
            let expected: Vec<i32> = deltas
                .iter()
                .map(|d| {
                    sum = sum.wrapping_add(*d as i32).wrapping_add(step);
                    sum
                })
                .collect();
            assert_eq!((out[1..].to_vec(), last), (expected, sum), "seed {seed}");
        }
    }
}
