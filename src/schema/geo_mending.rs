//! Changes of [`GeoMetadata`] for a file of other columns or rows than those that it was made for.
//!
//! Used by rewrites, and by callers that write the columns of a file anew.
//! Trap: what the key states of all geometries may not be too narrow, and what it names must be
//! there: readers refuse a file whose key names a column that it has not.

use super::geo_key::{GeoColumn, GeoMetadata};
use crate::format::BoundingBox;

impl GeoMetadata {
    /// Leaves out the columns and the coverings that a file has not, and names another primary
    /// column if that is one of them. `exists` says of the path of a column, name by name, whether
    /// it is in the file.
    ///
    /// Returns what has changed, in sentences. If no column is left, the file is no GeoParquet: it
    /// should not have the key.
    ///
    /// ```
    /// use marquetry::geo::{GeoColumn, GeoCovering, GeoMetadata};
    ///
    /// let mut geo = GeoMetadata::new("place");
    /// let mut column = GeoColumn::new();
    /// column.covering = Some(GeoCovering::of_struct("bbox"));
    /// geo.columns.insert("place".to_owned(), column);
    /// let changes = geo.retain(|path| path == ["place"]);
    /// assert_eq!(changes, ["\"place\": its covering is not in the file"]);
    /// assert_eq!(geo.columns["place"].covering, None);
    /// ```
    pub fn retain(&mut self, mut exists: impl FnMut(&[String]) -> bool) -> Vec<String> {
        let mut changes = Vec::new();
        self.columns.retain(|name, _| {
            let is_there = exists(std::slice::from_ref(name));
            if !is_there {
                changes.push(format!("\"{name}\" is not in the file"));
            }
            is_there
        });
        for (name, column) in &mut self.columns {
            let has_all = |column: &GeoColumn, exists: &mut dyn FnMut(&[String]) -> bool| {
                column.covering.as_ref().is_none_or(|of| {
                    [&of.xmin, &of.ymin, &of.xmax, &of.ymax].into_iter().all(|path| exists(path))
                })
            };
            if !has_all(column, &mut exists) {
                column.covering = None;
                changes.push(format!("\"{name}\": its covering is not in the file"));
            }
        }
        if let Some(first) = self.columns.keys().next()
            && !self.columns.contains_key(&self.primary_column)
        {
            changes.push(format!("the primary column is now \"{first}\""));
            self.primary_column.clone_from(first);
        }
        changes
    }

    /// Adds the geometries of another file, whose key is `other`: types and boxes become those of
    /// both, and unknown if they are unknown for one; a covering stays if both have it.
    ///
    /// Returns what has changed, in sentences.
    pub fn add_rows_of(&mut self, other: Option<&Self>) -> Vec<String> {
        let mut changes = Vec::new();
        for (name, column) in &mut self.columns {
            let of_other = other.and_then(|other| other.columns.get(name));
            let before = column.clone();
            let known = of_other.filter(|of_other| of_other.encoding == column.encoding);
            column.geometry_types = joined_types(column, known);
            column.bbox =
                known.and_then(|other| joined(column.bbox.as_ref()?, other.bbox.as_ref()?));
            let covering = known.and_then(|other| other.covering.as_ref());
            if covering != column.covering.as_ref() {
                column.covering = None;
            }
            if known.is_none_or(|other| other.orientation != column.orientation) {
                column.orientation = None;
            }
            if known.is_some_and(|other| other.crs != column.crs) {
                changes.push(format!(
                    "\"{name}\": the files have different coordinate systems; that of the first is \
                     stated"
                ));
            }
            let what = [
                ("types", before.geometry_types != column.geometry_types),
                ("box", before.bbox != column.bbox),
                ("covering", before.covering != column.covering),
                ("orientation", before.orientation != column.orientation),
            ];
            let what: Vec<&str> =
                what.into_iter().filter_map(|(what, is)| is.then_some(what)).collect();
            if !what.is_empty() {
                changes.push(format!("\"{name}\": {} as of all files", what.join(", ")));
            }
        }
        changes
    }
}

/// The types of both; none, which is unknown, if those of one are unknown.
fn joined_types(column: &GeoColumn, other: Option<&GeoColumn>) -> Vec<String> {
    let other = other.map(|other| other.geometry_types.as_slice()).unwrap_or_default();
    if other.is_empty() || column.geometry_types.is_empty() {
        return Vec::new();
    }
    let new = other.iter().filter(|name| !column.geometry_types.contains(name));
    column.geometry_types.iter().chain(new).cloned().collect()
}

/// The box of both; `None` if one crosses the antimeridian.
fn joined(a: &BoundingBox, b: &BoundingBox) -> Option<BoundingBox> {
    let is_plain = |of: &BoundingBox| of.xmin <= of.xmax && of.ymin <= of.ymax;
    if !is_plain(a) || !is_plain(b) {
        return None;
    }
    let z = a.zmin.zip(a.zmax).zip(b.zmin.zip(b.zmax));
    let z = z.map(|((a_min, a_max), (b_min, b_max))| (a_min.min(b_min), a_max.max(b_max)));
    Some(BoundingBox {
        zmin: z.map(|z| z.0),
        zmax: z.map(|z| z.1),
        ..BoundingBox::new(
            a.xmin.min(b.xmin),
            a.xmax.max(b.xmax),
            a.ymin.min(b.ymin),
            a.ymax.max(b.ymax),
        )
    })
}
