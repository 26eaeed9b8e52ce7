//! Tables of byte permutations by mask: they spread dense values to the set bits of a mask, or move
//! the values at the set bits together.
//!
//! Used by `expand` and `compact` with AVX2 and NEON, which have no instructions for it.

/// In place of an index: a lane that gets nothing. Byte permutations make it 0.
pub(super) const NONE: u8 = 0x80;

/// Rows for masks of up to 8 lanes.
type Rows = [[u8; 8]; 256];

/// For each slot the index of its value, the number of set bits before; [`NONE`] if its own is not
/// set.
pub(super) static SLOTS: Rows = rows(Wanted::Slots);

/// For each slot the index of the last value up to it; [`NONE`] if there is none yet.
pub(super) static ENDS: Rows = rows(Wanted::Ends);

/// For each kept value its slot; after the last, 0.
pub(super) static KEPT: Rows = rows(Wanted::Kept);

#[derive(Clone, Copy)]
enum Wanted {
    Slots,
    Ends,
    Kept,
}

#[expect(clippy::cast_possible_truncation, reason = "below 8, and no conversion is const")]
const fn rows(wanted: Wanted) -> Rows {
    let mut rows = [[0; 8]; 256];
    let mut mask = 0;
    while mask < rows.len() {
        let (mut slot, mut ones) = (0, 0);
        while slot < 8 {
            let set = mask >> slot & 1 != 0;
            match wanted {
                Wanted::Slots => rows[mask][slot] = if set { ones as u8 } else { NONE },
                Wanted::Ends if set => rows[mask][slot] = ones as u8,
                Wanted::Ends => rows[mask][slot] = if ones == 0 { NONE } else { ones as u8 - 1 },
                Wanted::Kept if set => rows[mask][ones] = slot as u8,
                Wanted::Kept => {}
            }
            ones += set as usize;
            slot += 1;
        }
        mask += 1;
    }
    rows
}

/// Rows of `LEN` indices for masks of `LEN / PARTS` lanes of `PARTS` parts each; there are `MASKS`
/// rows.
#[expect(clippy::cast_possible_truncation, reason = "below 16, and no conversion is const")]
const fn parts<const MASKS: usize, const LEN: usize, const PARTS: usize>(
    rows: &Rows,
) -> [[u8; LEN]; MASKS] {
    assert!(MASKS == 1 << (LEN / PARTS), "a row for each mask");
    let mut wide = [[0; LEN]; MASKS];
    let mut mask = 0;
    while mask < MASKS {
        let mut i = 0;
        while i < LEN {
            let lane = rows[mask][i / PARTS];
            let part = lane as usize * PARTS + i % PARTS;
            wide[mask][i] = if lane == NONE { NONE } else { part as u8 };
            i += 1;
        }
        mask += 1;
    }
    wide
}

macro_rules! wide {
    ($($(#[$cfg:meta])? $name:ident = $rows:ident: $masks:literal, $len:literal, $parts:literal;)*) => {
        $(
            $(#[$cfg])?
            pub(super) static $name: [[u8; $len]; $masks] = parts::<$masks, $len, $parts>(&$rows);
        )*
    };
}
wide! {
    // Bytes of lanes of 2 bytes.
    SLOTS_2 = SLOTS: 256, 16, 2;
    KEPT_2 = KEPT: 256, 16, 2;
    // Words of 4 bytes of lanes of 8 and of 16.
    #[cfg(target_arch = "x86_64")] SLOTS_8 = SLOTS: 16, 8, 2;
    #[cfg(target_arch = "x86_64")] SLOTS_16 = SLOTS: 4, 8, 4;
    #[cfg(target_arch = "x86_64")] ENDS_8 = ENDS: 16, 8, 2;
    #[cfg(target_arch = "x86_64")] KEPT_8 = KEPT: 16, 8, 2;
    // Bytes of lanes of 4 and of 8.
    #[cfg(target_arch = "aarch64")] SLOTS_4 = SLOTS: 16, 16, 4;
    #[cfg(target_arch = "aarch64")] SLOTS_8 = SLOTS: 4, 16, 8;
    #[cfg(target_arch = "aarch64")] ENDS_4 = ENDS: 16, 16, 4;
    #[cfg(target_arch = "aarch64")] ENDS_8 = ENDS: 4, 16, 8;
    #[cfg(target_arch = "aarch64")] KEPT_4 = KEPT: 16, 16, 4;
}
