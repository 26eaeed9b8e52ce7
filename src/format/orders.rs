//! [`ColumnOrders`]: the column orders of a footer, stored as one byte for each leaf.
//!
//! Spec: `parquet.thrift`, ColumnOrder. Read with [`FileHead`](super::FileHead); `read::footer`
//! asks for the order of a leaf. A vector of [`ColumnOrder`] for a wide file would take longer to
//! allocate than to decode. Trap: an unknown member may be of any length, so unknown members are
//! kept apart.

use std::fmt;

use super::file::ColumnOrder;
use crate::error::Result;
use crate::thrift::{Read, ThriftReader, Unknown, wire};

/// The order of the bounds in statistics, one for each leaf.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ColumnOrders {
    /// The id of the member, 0 if there is none, or [`OTHER`].
    codes: Box<[u8]>,
    /// Members that are not known, by index.
    others: Vec<(usize, ColumnOrder)>,
}

impl ColumnOrders {
    /// Number of orders. A valid file has one for each leaf; others may not.
    #[inline]
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there are no orders.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The order of the leaf at `index`; `None` if there are fewer.
    pub fn get(&self, index: usize) -> Option<&ColumnOrder> {
        match *self.codes.get(index)? {
            OTHER => {
                let at = self.others.binary_search_by_key(&index, |(index, _)| *index).ok()?;
                self.others.get(at).map(|(_, order)| order)
            }
            code => KNOWN.get(usize::from(code)).copied(),
        }
    }

    /// The orders, leaf after leaf.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ColumnOrder> {
        // There is one for each index.
        (0..self.len()).map(|index| self.get(index).unwrap_or(NONE))
    }

    /// Bytes of memory that it holds, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.codes.len() + self.others.capacity() * size_of::<(usize, ColumnOrder)>()
    }
}

impl fmt::Debug for ColumnOrders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Read<'_> for ColumnOrders {
    const TYPE: u8 = wire::LIST;

    #[inline]
    fn fits(ty: u8, payload: &[u8]) -> bool {
        Vec::<ColumnOrder>::fits(ty, payload)
    }

    fn read(reader: &mut ThriftReader<'_>) -> Result<Self> {
        let (_, n) = reader.list()?;
        // Each takes a byte or more there, and one here.
        let mut codes = Vec::with_capacity(n);
        let mut others = Vec::new();
        for index in 0..n {
            codes.push(match plain_member(reader.rest()) {
                Some(code) => {
                    reader.skip_bytes(PLAIN_LEN)?;
                    code
                }
                None => {
                    let order = ColumnOrder::read(reader)?;
                    let known = KNOWN.iter().position(|known| **known == order);
                    known.and_then(|code| u8::try_from(code).ok()).unwrap_or_else(|| {
                        others.push((index, order));
                        OTHER
                    })
                }
            });
        }
        Ok(Self { codes: codes.into_boxed_slice(), others })
    }
}

/// The member at the front of `bytes`, if it is a known one, written as all writers do: its header,
/// the stop of the empty struct, and that of the union.
#[inline]
fn plain_member(bytes: &[u8]) -> Option<u8> {
    let &[header, wire::STOP, wire::STOP] = bytes.first_chunk::<PLAIN_LEN>()? else { return None };
    let (id, ty) = (header >> 4, header & 0x0F);
    (ty == wire::STRUCT && id > 0 && usize::from(id) < KNOWN.len()).then_some(id)
}

/// Bytes of a known member, as all writers write it.
const PLAIN_LEN: usize = 3;

/// A union without a member.
const NONE: &ColumnOrder = &ColumnOrder::Unrecognized(Unknown::NONE);

/// The members that are known, by their ids.
const KNOWN: [&ColumnOrder; 4] = [
    NONE,
    &ColumnOrder::TypeOrder,
    &ColumnOrder::Ieee754TotalOrder,
    &ColumnOrder::Int96TimestampOrder,
];

/// A member that is not known.
const OTHER: u8 = u8::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thrift::Thrift;

    /// As the bytes of a list with the long header.
    fn list(members: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![0xFC];
        let mut n = members.len();
        while n >= 0x80 {
            bytes.push((n & 0x7F) as u8 | 0x80);
            n >>= 7;
        }
        bytes.push(n as u8);
        bytes.extend(members.concat());
        bytes
    }

    /// Reads a list in both forms: the same, or the same error.
    fn read(bytes: &[u8], what: &str) -> Option<ColumnOrders> {
        let (mut one, mut other) = (ThriftReader::new(bytes), ThriftReader::new(bytes));
        match (Vec::<ColumnOrder>::read(&mut one), ColumnOrders::read(&mut other)) {
            (Ok(owned), Ok(orders)) => {
                assert_eq!(one.position(), other.position(), "{what}");
                assert_eq!(orders.len(), owned.len(), "{what}");
                assert!(orders.iter().eq(&owned), "{what}: {orders:?}");
                assert_eq!(orders.get(owned.len()), None, "{what}");
                assert_eq!(format!("{orders:?}"), format!("{owned:?}"), "{what}");
                Some(orders)
            }
            (Err(owned), Err(error)) => {
                assert_eq!(error.to_string(), owned.to_string(), "{what}");
                None
            }
            (owned, orders) => panic!("{what}: {owned:?} and {orders:?}"),
        }
    }

    #[test]
    fn each_member_is_read_as_itself() {
        let known = [
            ColumnOrder::TypeOrder,
            ColumnOrder::Ieee754TotalOrder,
            ColumnOrder::Int96TimestampOrder,
        ];
        for (id, order) in (1..).zip(&known) {
            let bytes = order.to_thrift();
            assert_eq!(plain_member(&bytes), Some(id), "{order}: no slow path");
            let orders = read(&list(&[&bytes]), &order.to_string()).unwrap();
            assert_eq!(orders.get(0), Some(order));
            assert!(orders.others.is_empty(), "{order}");
        }
        let mut member_4 = ThriftReader::new(&[0x4C, 0, 0]);
        let unknown = ColumnOrder::read(&mut member_4).unwrap();
        assert!(matches!(&unknown, ColumnOrder::Unrecognized(kept) if !kept.is_empty()));
        let mixed = [&[0x4C, 0, 0][..], &[0x1C, 0, 0], &[0], &[0x9C, 0x15, 2, 0, 0], &[0x2C, 0, 0]];
        let orders = read(&list(&mixed), "all of them").unwrap();
        assert_eq!(orders.get(0), Some(&unknown));
        assert_eq!(orders.get(1), Some(&ColumnOrder::TypeOrder));
        assert_eq!(orders.get(2), Some(&ColumnOrder::default()), "keeps its place");
        assert_eq!(orders.get(3).unwrap().to_string(), "unknown (9)");
        assert_eq!(orders.get(4), Some(&ColumnOrder::Ieee754TotalOrder));
        assert_eq!((orders.codes.len(), orders.others.len()), (5, 2), "those not known apart");
        assert!(read(&list(&[]), "none").unwrap().is_empty());
    }

    #[test]
    fn any_list_is_read_as_the_vector_of_its_orders() {
        let members: [&[u8]; 11] = [
            &[0x1C, 0, 0],
            &[0x2C, 0, 0],
            &[0x3C, 0, 0],
            &[0],
            &[0x4C, 0, 0],
            // Another member of unknown content, a number, a member with content, in long form.
            &[0x1C, 0x18, 2, b'a', b'b', 0, 0],
            &[0x15, 2, 0],
            &[0xDC, 0x15, 8, 0, 0],
            &[0x0C, 2, 0, 0],
            // Two members; the second is known, or is not.
            &[0x1C, 0, 0x1C, 0, 0],
            &[0x1C, 0, 0x8C, 0, 0],
        ];
        for seed in 0..300 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let common = *rng.choice(&members).unwrap();
            let some = |rng: &mut fastrand::Rng| match rng.u8(..4) {
                0 => *rng.choice(&members).unwrap(),
                _ => common,
            };
            let chosen: Vec<_> = (0..rng.usize(..300)).map(|_| some(&mut rng)).collect();
            let mut bytes = list(&chosen);
            let whole = read(&bytes, &format!("seed {seed}"));
            assert_eq!(whole.map(|orders| orders.len()), Some(chosen.len()), "seed {seed}");
            bytes.truncate(rng.usize(..=bytes.len()));
            read(&bytes, &format!("seed {seed}, cut to {} bytes", bytes.len()));
            if !bytes.is_empty() {
                let at = rng.usize(..bytes.len());
                bytes[at] = rng.u8(..);
                read(&bytes, &format!("seed {seed}, byte {at} changed"));
            }
        }
    }
}
