//! Chooses which columns of a table are shown, and how wide, by their widths and that of the
//! screen.

/// Width of a line besides its cells: `│ ` and ` ` for each column, and `│` at the end.
const FRAME: usize = 3;
/// Width of the column that stands for those left out.
const GAP: usize = 1;

/// How a table is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The columns shown before those that are left out, and their widths.
    pub(crate) left: Vec<usize>,
    /// The columns shown after them.
    pub(crate) right: Vec<usize>,
    /// How many are left out between them.
    pub(crate) hidden: usize,
}

impl Layout {
    /// All columns as wide as they are.
    pub(crate) fn whole(natural: &[usize]) -> Self {
        Self { left: natural.to_vec(), right: Vec::new(), hidden: 0 }
    }

    /// Columns of these natural widths on a screen of this width.
    ///
    /// Where not all fit, long ones are cut, but not below their `least` widths; where that is not
    /// enough, those in the middle are left out.
    pub(crate) fn fit(natural: &[usize], least: &[usize], screen: usize) -> Self {
        let whole: usize = natural.iter().map(|width| width + FRAME).sum::<usize>() + 1;
        if whole <= screen {
            return Self::whole(natural);
        }
        let least: Vec<usize> = natural.iter().zip(least).map(|(a, b)| *a.min(b)).collect();
        let frame = natural.len() * FRAME + 1;
        if least.iter().sum::<usize>() + frame <= screen {
            return Self {
                left: share(natural, &least, screen - frame),
                right: Vec::new(),
                hidden: 0,
            };
        }
        // From both ends, the left one first, while there is room.
        let mut room = screen.saturating_sub(1 + GAP + FRAME);
        let (mut left, mut right) = (0, 0);
        let mut from_left = true;
        while left + right < natural.len() {
            let next = if from_left { left } else { natural.len() - 1 - right };
            let width = least.get(next).copied().unwrap_or_default() + FRAME;
            if width > room {
                break;
            }
            room -= width;
            if from_left {
                left += 1
            } else {
                right += 1
            }
            from_left = !from_left;
        }
        // A screen too narrow for one column shows a part of the first one.
        left = left.max(1);
        let shown = |widths: &[usize]| -> Vec<usize> {
            let ends = [widths.get(..left), widths.get(widths.len() - right..)];
            ends.into_iter().flatten().flatten().copied().collect()
        };
        let (shown, least) = (shown(natural), shown(&least));
        let gap = if shown.len() < natural.len() { GAP + FRAME } else { 0 };
        let cells = screen.saturating_sub(1 + gap + shown.len() * FRAME).max(1);
        let mut left_widths = share(&shown, &least, cells);
        let right_widths = left_widths.split_off(left);
        Self { hidden: natural.len() - shown.len(), left: left_widths, right: right_widths }
    }

    /// The numbers of the columns shown, in order, and their widths.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let after = self.left.len() + self.hidden;
        let left = self.left.iter().copied().enumerate();
        left.chain(self.right.iter().enumerate().map(move |(i, width)| (after + i, *width)))
    }
}

/// Shares `room` among columns: none gets more than it needs or less than its least width, and
/// those in between get the same.
fn share(natural: &[usize], least: &[usize], room: usize) -> Vec<usize> {
    if let [width] = natural {
        return vec![room.min(*width)];
    }
    let at = |level: usize| -> Vec<usize> {
        natural.iter().zip(least).map(|(natural, least)| level.clamp(*least, *natural)).collect()
    };
    // The highest level that fits.
    let (mut low, mut high) = (0, room);
    while low < high {
        let level = (low + high).div_ceil(2);
        if at(level).iter().sum::<usize>() <= room { low = level } else { high = level - 1 }
    }
    let mut widths = at(low);
    let mut left = room.saturating_sub(widths.iter().sum());
    for (width, natural) in widths.iter_mut().zip(natural) {
        if left > 0 && *width == low && low < *natural {
            *width += 1;
            left -= 1;
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(layout: &Layout) -> usize {
        let gap = if layout.hidden > 0 { GAP + FRAME } else { 0 };
        layout.shown().map(|(_, width)| width + FRAME).sum::<usize>() + gap + 1
    }

    #[test]
    fn what_fits_is_shown_whole() {
        assert_eq!(Layout::fit(&[3, 10, 20], &[12; 3], 80), Layout::whole(&[3, 10, 20]));
        assert_eq!(Layout::fit(&[], &[], 80), Layout::whole(&[]));
    }

    #[test]
    fn long_columns_are_cut_before_any_is_left_out() {
        let layout = Layout::fit(&[3, 500, 8, 300], &[12; 4], 80);
        assert_eq!((layout.hidden, taken(&layout)), (0, 80));
        assert_eq!((layout.left[0], layout.left[2]), (3, 8));
        assert!(layout.left[1].abs_diff(layout.left[3]) <= 1);
    }

    #[test]
    fn a_column_that_must_not_be_cut_is_whole() {
        let layout = Layout::fit(&[100, 20, 100], &[12, 20, 12], 60);
        assert_eq!((&layout.left[..], layout.hidden), (&[15, 20, 15][..], 0));
        let layout = Layout::fit(&[20, 20, 20, 20], &[20; 4], 60);
        assert_eq!((&layout.left[..], &layout.right[..], layout.hidden), (&[20][..], &[20][..], 2));
    }

    #[test]
    fn columns_in_the_middle_are_left_out() {
        let layout = Layout::fit(&[10; 105], &[12; 105], 80);
        assert_eq!((layout.left.len(), layout.right.len(), layout.hidden), (3, 2, 100));
        assert!(taken(&layout) <= 80);
        let shown: Vec<usize> = layout.shown().map(|(i, _)| i).collect();
        assert_eq!(shown, [0, 1, 2, 103, 104]);
    }

    #[test]
    fn every_screen_is_kept_to_and_has_a_column() {
        for screen in 9..200 {
            for natural in [vec![1; 40], vec![1000], vec![0, 0], (0..60).collect(), vec![70, 1, 70]]
            {
                let layout = Layout::fit(&natural, &vec![12; natural.len()], screen);
                assert!(taken(&layout) <= screen, "{natural:?} on {screen}: {layout:?}");
                assert!(!layout.left.is_empty());
                assert_eq!(layout.left.len() + layout.right.len() + layout.hidden, natural.len());
            }
        }
        // On so narrow a screen nothing is drawn.
        assert_eq!(Layout::fit(&[5, 5], &[12; 2], 0).left.len(), 1);
    }
}
