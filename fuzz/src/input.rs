//! [`Input`]: choices and parts, taken from the bytes of a fuzzer.

use fastrand::Rng;

/// Bytes that choices are taken from. Where none are left, all choices are the first.
#[derive(Clone, Copy)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_at(self.0.len().min(N));
        self.0 = rest;
        let mut out = [0; N];
        out[..taken.len()].copy_from_slice(taken);
        out
    }

    pub fn u8(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub fn bool(&mut self) -> bool {
        self.u8() & 1 == 1
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.u8()) % of.len()]
    }

    /// Bytes after their length.
    pub fn part(&mut self) -> &'a [u8] {
        let len = usize::from(self.u16()).min(self.0.len());
        let (part, rest) = self.0.split_at(len);
        self.0 = rest;
        part
    }

    /// The bytes that are left.
    #[must_use]
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Random numbers of two bytes: few enough to be tried again.
    pub fn rng(&mut self) -> Rng {
        Rng::with_seed(u64::from(self.u16()))
    }
}

/// The opposite of [`Input`]: makes the bytes of seeds.
#[derive(Default, Clone)]
pub struct Output(Vec<u8>);

impl Output {
    #[must_use]
    pub fn u8(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    #[must_use]
    pub fn u16(mut self, number: u16) -> Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    #[must_use]
    pub fn u64(mut self, number: u64) -> Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    /// # Panics
    /// If the part is longer than 65,535 bytes.
    #[must_use]
    pub fn part(self, bytes: &[u8]) -> Self {
        let len = u16::try_from(bytes.len()).expect("a short part");
        self.u16(len).rest(bytes)
    }

    #[must_use]
    pub fn rest(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        self.0
    }
}
