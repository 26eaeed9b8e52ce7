//! [`FindingKind`]: what can be wrong with a file, and how much it matters.

use std::fmt;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Nothing contradicts the specification: something is deprecated, missed, or not checked.
    Note,
    /// The specification advises against it, or readers are known to work around it.
    Warning,
    /// The file contradicts the specification or itself.
    Error,
}

impl Severity {
    /// All severities.
    pub const ALL: &[Self] = &[Self::Note, Self::Warning, Self::Error];

    /// Its name, in lower case, as reports have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! finding_kinds {
    ($($severity:ident { $($(#[$meta:meta])* $Kind:ident $code:literal $text:literal,)* })*) => {
        /// A rule that is broken. A closed list: a version may add to it, and changes nothing.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum FindingKind {
            $($(#[doc = $text] $(#[$meta])* $Kind,)*)*
        }

        impl FindingKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$($(Self::$Kind,)*)*];

            /// Its name, in kebab case, as reports have it.
            pub const fn code(self) -> &'static str {
                match self {
                    $($(Self::$Kind => $code,)*)*
                }
            }

            /// The rule that is broken, in a sentence.
            pub const fn text(self) -> &'static str {
                match self {
                    $($(Self::$Kind => $text,)*)*
                }
            }

            /// How much it matters.
            pub const fn severity(self) -> Severity {
                match self {
                    $($(Self::$Kind)|* => Severity::$severity,)*
                }
            }
        }
    };
}
finding_kinds! {
    Error {
        // The file.
        MagicWrong "magic-wrong" "A file begins and ends with PAR1, or PARE if its footer is encrypted.",
        FooterUnreadable "footer-unreadable" "The footer is a FileMetaData with a schema, and its length stands after it.",
        FileRowsWrong "file-rows-wrong" "The rows of the file are those of its row groups.",
        BytesClaimedTwice "bytes-claimed-twice" "Chunks, indexes, bloom filters and the footer share no bytes.",
        // The schema.
        LeafTypeInvalid "leaf-type-invalid" "A column has a known physical type and repetition, and a length if the type needs one.",
        LogicalTypeMisplaced "logical-type-misplaced" "An annotation stands on a type that may bear it, with parameters in their range.",
        ConvertedTypeDiffers "converted-type-differs" "A converted type says the same as the logical type beside it.",
        DecimalFieldsDiffer "decimal-fields-differ" "Scale and precision of a schema element are those of its logical type.",
        SiblingNamesRepeat "sibling-names-repeat" "The fields of a group have different names.",
        ListShapeWrong "list-shape-wrong" "A LIST has one child, which is a repeated group or element.",
        MapShapeWrong "map-shape-wrong" "A MAP has one child: a repeated group of a key, and a value or none.",
        VariantShapeWrong "variant-shape-wrong" "A VARIANT has the fields that its specification names, of their types and repetitions.",
        FileShapeWrong "file-shape-wrong" "A FILE has the optional fields that its specification names, of their types.",
        // Column orders.
        ColumnOrdersMiscounted "column-orders-miscounted" "There is a column order for each column.",
        ColumnOrderMisplaced "column-order-misplaced" "A column order stands on a type that it orders.",
        // Row groups.
        RowGroupRowsNegative "row-group-rows-negative" "Row groups do not have less than no rows.",
        RowGroupColumnsMiscounted "row-group-columns-miscounted" "A row group has a column chunk for each column.",
        RowGroupOrdinalWrong "row-group-ordinal-wrong" "The ordinal of a row group is its position.",
        SortingColumnInvalid "sorting-column-invalid" "Sorting columns are columns, each once.",
        // Column chunks in the footer.
        ChunkUnreadable "chunk-unreadable" "The metadata of a column chunk can be decoded.",
        ChunkMetadataMissing "chunk-metadata-missing" "A column chunk that is not encrypted has metadata.",
        ChunkTypeDiffers "chunk-type-differs" "The type of a column chunk is that of the schema.",
        ChunkPathDiffers "chunk-path-differs" "The path of a column chunk is that of the schema.",
        ChunkCodecUnknown "chunk-codec-unknown" "A column chunk is compressed with a codec of the specification.",
        ChunkSizeNegative "chunk-size-negative" "Sizes, counts and offsets are not negative.",
        ChunkOutsideFile "chunk-outside-file" "A column chunk lies between the magic number and the footer.",
        ChunkValuesTooFew "chunk-values-too-few" "A column chunk has at least as many values as its row group rows, and exactly as many outside lists.",
        DictionaryOffsetMisplaced "dictionary-offset-misplaced" "The dictionary page comes before the data pages.",
        OffsetIndexOutsideFile "offset-index-outside-file" "An offset index lies between the magic number and the footer, offset and length being stated together.",
        ColumnIndexOutsideFile "column-index-outside-file" "A column index lies between the magic number and the footer, offset and length being stated together.",
        ColumnIndexAlone "column-index-alone" "A column index has an offset index beside it.",
        BloomFilterOutsideFile "bloom-filter-outside-file" "A bloom filter lies between the magic number and the footer.",
        // Statistics in the footer, by themselves.
        NullCountImpossible "null-count-impossible" "Nulls are not negative, and no more than the values.",
        DistinctCountImpossible "distinct-count-impossible" "Distinct values are not negative, and no more than the values that are not null.",
        NanCountImpossible "nan-count-impossible" "NaNs are counted for floating-point numbers only, and are no more than the values that are not null.",
        BoundLengthWrong "bound-length-wrong" "A bound is a value of the type, as PLAIN has it.",
        BoundsReversed "bounds-reversed" "A minimum is not greater than the maximum.",
        HistogramMiscounted "histogram-miscounted" "A histogram has a count for each level, none of them negative, and their sum is the number of values.",
        UnencodedBytesMisplaced "unencoded-bytes-misplaced" "Unencoded bytes are counted for BYTE_ARRAY columns, and are not negative.",
        GeometryStatisticsInvalid "geometry-statistics-invalid" "Geospatial statistics are of geometries, with a box that has no NaN and types of the specification.",
        EncodingStatsNegative "encoding-stats-negative" "Pages are counted from 0 on.",
        // Pages.
        PageHeaderUnreadable "page-header-unreadable" "A page begins with a PageHeader.",
        PageHeaderIncomplete "page-header-incomplete" "A page header has the struct of its type, and counts that are not negative.",
        PageOutsideChunk "page-outside-chunk" "A page ends where its column chunk does, or before.",
        DictionaryPageMisplaced "dictionary-page-misplaced" "A dictionary page is the first page of its column chunk, and the only one.",
        DictionaryOffsetWrong "dictionary-offset-wrong" "dictionary_page_offset is where the dictionary page begins, if there is one.",
        DictionaryEncodingWrong "dictionary-encoding-wrong" "A dictionary page is PLAIN.",
        DataPageOffsetWrong "data-page-offset-wrong" "data_page_offset is where the first data page begins.",
        PageChecksumWrong "page-checksum-wrong" "The checksum of a page is the CRC-32 of its body.",
        PageBodyUnreadable "page-body-unreadable" "The body of a page decompresses to the size in its header, and has its levels in front of its values.",
        PageLevelsUnreadable "page-levels-unreadable" "A page has as many levels as its header says, none of them above the highest of the column.",
        LevelsInconsistent "levels-inconsistent" "An element that continues a list follows an element of it.",
        SiblingLevelsDiffer "sibling-levels-differ" "The columns of a group agree on where it is null, and on the lists that it is in.",
        PageRowsWrong "page-rows-wrong" "num_rows of a page is the number of rows that begin in it.",
        PageNullsWrong "page-nulls-wrong" "num_nulls of a page is the number of its values that are null.",
        PageStartsInRow "page-starts-in-row" "A page of version 2, or one with an offset index, begins with a row.",
        ChunkStartsInRow "chunk-starts-in-row" "A column chunk begins with a row.",
        ChunkValuesWrong "chunk-values-wrong" "num_values of a column chunk is the sum over its data pages.",
        ChunkRowsWrong "chunk-rows-wrong" "A column chunk has as many rows as its row group.",
        ChunkUncompressedSizeWrong "chunk-uncompressed-size-wrong" "total_uncompressed_size of a column chunk is the sum over its pages, headers included.",
        EncodingMisplaced "encoding-misplaced" "A page is in an encoding that its type may have.",
        EncodingStatsWrong "encoding-stats-wrong" "Encoding statistics count the pages of each type and encoding.",
        DictionaryMissing "dictionary-missing" "A page of indices comes after a dictionary page.",
        // The page index.
        OffsetIndexUnreadable "offset-index-unreadable" "An offset index can be decoded.",
        OffsetIndexMiscounted "offset-index-miscounted" "An offset index has an entry for each data page.",
        OffsetIndexOffsetWrong "offset-index-offset-wrong" "An offset index says where each data page begins.",
        OffsetIndexSizeWrong "offset-index-size-wrong" "An offset index says how long each data page is, header included.",
        OffsetIndexRowWrong "offset-index-row-wrong" "An offset index says which row each data page begins with.",
        OffsetIndexBytesWrong "offset-index-bytes-wrong" "An offset index says how many bytes the values of each page have, in BYTE_ARRAY columns only.",
        ColumnIndexUnreadable "column-index-unreadable" "A column index can be decoded.",
        ColumnIndexMiscounted "column-index-miscounted" "The lists of a column index have an entry for each data page, and its histograms one for each level of each page.",
        ColumnIndexBoundLengthWrong "column-index-bound-length-wrong" "A bound of a page is a value of the type, as PLAIN has it.",
        ColumnIndexBoundsReversed "column-index-bounds-reversed" "The minimum of a page is not greater than its maximum.",
        BoundaryOrderWrong "boundary-order-wrong" "The bounds of pages rise or fall as the boundary order says.",
        // Bloom filters.
        BloomFilterUnreadable "bloom-filter-unreadable" "A bloom filter has a header, and bits in blocks of 32 bytes.",
        BloomFilterLengthWrong "bloom-filter-length-wrong" "bloom_filter_length is that of header and bits.",
        // Values.
        ValuesUnreadable "values-unreadable" "A page has as many values as its levels say, in its encoding.",
        DictionaryIndexInvalid "dictionary-index-invalid" "An index is that of a value of the dictionary.",
        TextNotUtf8 "text-not-utf8" "Strings, enums and JSON are UTF-8.",
        JsonInvalid "json-invalid" "A JSON value is JSON.",
        BsonInvalid "bson-invalid" "A BSON value has its length in front, and a zero byte at its end.",
        DecimalTooLarge "decimal-too-large" "A decimal has at most as many digits as its precision.",
        IntegerTooWide "integer-too-wide" "A value of INT(8) or INT(16) fits into as many bits.",
        GeometryInvalid "geometry-invalid" "A geometry is well-known binary.",
        ValueOfUnknownType "value-of-unknown-type" "A column of the type UNKNOWN has nulls only.",
        VariantInvalid "variant-invalid" "A VARIANT has valid metadata and a valid value, and its columns fit together.",
        FileReferenceInvalid "file-reference-invalid" "A FILE value is a reference, or has its bytes with it.",
        DictionaryUnsorted "dictionary-unsorted" "A dictionary that is said to be sorted is.",
        // Statistics against the values.
        ChunkMinTooLarge "chunk-min-too-large" "No value of a column chunk is less than its minimum.",
        ChunkMaxTooSmall "chunk-max-too-small" "No value of a column chunk is greater than its maximum.",
        ChunkMinNotExact "chunk-min-not-exact" "A minimum that is said to be exact is a value.",
        ChunkMaxNotExact "chunk-max-not-exact" "A maximum that is said to be exact is a value.",
        ChunkNullCountWrong "chunk-null-count-wrong" "null_count of a column chunk is the number of its nulls.",
        ChunkNanCountWrong "chunk-nan-count-wrong" "nan_count of a column chunk is the number of its NaNs.",
        ChunkDistinctCountWrong "chunk-distinct-count-wrong" "distinct_count of a column chunk is the number of its distinct values.",
        ChunkLegacyMinTooLarge "chunk-legacy-min-too-large" "No value of a column chunk is less than the deprecated `min`, where its order is defined.",
        ChunkLegacyMaxTooSmall "chunk-legacy-max-too-small" "No value of a column chunk is greater than the deprecated `max`, where its order is defined.",
        ChunkBytesWrong "chunk-bytes-wrong" "unencoded_byte_array_data_bytes is the sum of the lengths of the values.",
        ChunkDefinitionHistogramWrong "chunk-definition-histogram-wrong" "A histogram counts the definition levels of a column chunk.",
        ChunkRepetitionHistogramWrong "chunk-repetition-histogram-wrong" "A histogram counts the repetition levels of a column chunk.",
        ChunkBoxTooSmall "chunk-box-too-small" "The bounding box of a column chunk has all its geometries inside.",
        ChunkGeometryTypeMissing "chunk-geometry-type-missing" "The geospatial types of a column chunk are those of its geometries.",
        PageMinTooLarge "page-min-too-large" "No value of a page is less than the minimum in its header.",
        PageMaxTooSmall "page-max-too-small" "No value of a page is greater than the maximum in its header.",
        PageMinNotExact "page-min-not-exact" "A minimum in a page header that is said to be exact is a value.",
        PageMaxNotExact "page-max-not-exact" "A maximum in a page header that is said to be exact is a value.",
        PageNullCountWrong "page-null-count-wrong" "null_count in a page header is the number of nulls of the page.",
        PageNanCountWrong "page-nan-count-wrong" "nan_count in a page header is the number of NaNs of the page.",
        PageDistinctCountWrong "page-distinct-count-wrong" "distinct_count in a page header is the number of distinct values of the page.",
        PageLegacyMinTooLarge "page-legacy-min-too-large" "No value of a page is less than the deprecated `min` in its header, where its order is defined.",
        PageLegacyMaxTooSmall "page-legacy-max-too-small" "No value of a page is greater than the deprecated `max` in its header, where its order is defined.",
        ColumnIndexNullPageWrong "column-index-null-page-wrong" "null_pages says which pages have no value but nulls.",
        ColumnIndexMinTooLarge "column-index-min-too-large" "No value of a page is less than its minimum in the column index.",
        ColumnIndexMaxTooSmall "column-index-max-too-small" "No value of a page is greater than its maximum in the column index.",
        ColumnIndexNullCountWrong "column-index-null-count-wrong" "null_counts are the numbers of nulls of the pages.",
        ColumnIndexNanCountWrong "column-index-nan-count-wrong" "nan_counts are the numbers of NaNs of the pages.",
        ColumnIndexDefinitionHistogramWrong "column-index-definition-histogram-wrong" "Histograms count the definition levels of the pages.",
        ColumnIndexRepetitionHistogramWrong "column-index-repetition-histogram-wrong" "Histograms count the repetition levels of the pages.",
        BloomFilterMissesValue "bloom-filter-misses-value" "A bloom filter has all values of its column chunk.",
        GeoBoxTooSmall "geo-box-too-small" "The bbox of a column under the key geo has all its geometries inside.",
        GeoTypeMissing "geo-type-missing" "The geometry_types of a column under the key geo are those of its geometries.",
        GeoCoveringWrong "geo-covering-wrong" "A covering under the key geo has a box for each geometry, with the geometry inside, and for nothing else.",
        RowsUnsorted "rows-unsorted" "The rows of a row group are sorted as its sorting columns say.",
        // Summaries.
        SummaryFileUnreadable "summary-file-unreadable" "The files that a summary names are there, and can be read.",
        SummarySchemaDiffers "summary-schema-differs" "The schema of a summary is that of its files.",
        SummaryRowGroupsDiffer "summary-row-groups-differ" "The row groups of a summary are those of its files.",
    }
    Warning {
        EncodingUnlisted "encoding-unlisted" "The encodings of a column chunk are those of its pages.",
        TimeOutsideDay "time-outside-day" "A time is that of a day.",
        VersionUnknown "version-unknown" "The version of the footer is 1 or 2.",
        FooterBytesLeft "footer-bytes-left" "The footer ends where its length says.",
        ColumnOrdersMissing "column-orders-missing" "Minima and maxima mean nothing without column orders.",
        RowGroupSizeWrong "row-group-size-wrong" "total_byte_size of a row group is the sum over its column chunks, uncompressed.",
        RowGroupCompressedSizeWrong "row-group-compressed-size-wrong" "total_compressed_size of a row group is the sum over its column chunks.",
        RowGroupOffsetWrong "row-group-offset-wrong" "file_offset of a row group is where its first page begins.",
        ArrowSchemaUnreadable "arrow-schema-unreadable" "ARROW:schema is a schema of Arrow, in Base64.",
        ArrowSchemaDiffers "arrow-schema-differs" "ARROW:schema has the fields of the schema.",
        GeoKeyUnreadable "geo-key-unreadable" "The value of the key geo is the JSON of GeoParquet.",
        GeoKeyInvalid "geo-key-invalid" "The key geo names columns of the file, and says of them what GeoParquet has words for.",
        ChunkBytesLeft "chunk-bytes-left" "total_compressed_size of a column chunk is the sum over its pages, headers included.",
        BoundsWithoutOrder "bounds-without-order" "A column whose values have no order has no bounds.",
        BoundsOfNothing "bounds-of-nothing" "A column chunk or page of nulls has no bounds.",
        BoundNan "bound-nan" "NaN is no bound, unless all values are NaN and the order is the total one.",
        BoundNotText "bound-not-text" "A bound of a string is text.",
        MapKeyOptional "map-key-optional" "The key of a MAP is required.",
        ColumnIndexImpossible "column-index-impossible" "A column whose values have no order has no column index.",
        Int96NanosOutsideDay "int96-nanos-outside-day" "The nanoseconds of an INT96 timestamp are those of a day.",
        ColumnIndexNullBounds "column-index-null-bounds" "The bounds of a page of nulls are empty.",
        BloomFilterOfBoolean "bloom-filter-of-boolean" "A BOOLEAN column has no bloom filter.",
        PageBytesLeft "page-bytes-left" "The values of a PLAIN page end where it does.",
    }
    Note {
        NotChecked "not-checked" "A limit, a missing key or something unsupported kept a part of the file from being checked.",
        WriterUnnamed "writer-unnamed" "A file names its writer.",
        KeyRepeats "key-repeats" "The keys of the key-value metadata are different.",
        ColumnOrderUnknown "column-order-unknown" "A column order is one that is known.",
        LogicalTypeUnknown "logical-type-unknown" "A logical type is one that is known.",
        EncodingDeprecated "encoding-deprecated" "PLAIN_DICTIONARY and BIT_PACKED are deprecated.",
        CodecDeprecated "codec-deprecated" "The codec LZ4 is deprecated for LZ4_RAW.",
        TypeDeprecated "type-deprecated" "INT96 is deprecated.",
        LegacyBoundsAlone "legacy-bounds-alone" "`min` and `max` are deprecated for `min_value` and `max_value`.",
        BoundOneSided "bound-one-sided" "Bounds are stated in pairs.",
        BloomFilterLengthMissing "bloom-filter-length-missing" "A bloom filter has its length in the footer.",
        PageStatisticsRedundant "page-statistics-redundant" "Statistics in page headers are redundant with a column index.",
        EncodingStatsPageType "encoding-stats-page-type" "Encoding statistics tell pages of version 1 and 2 apart.",
        DictionaryOffsetMissing "dictionary-offset-missing" "dictionary_page_offset is stated if there is a dictionary page.",
        NullCountOfLeaf "null-count-of-leaf" "The places of empty and of null lists count as nulls.",
        EncodingUnused "encoding-unused" "The encodings of a column chunk are those of its pages.",
        DictionaryValueRepeats "dictionary-value-repeats" "The values of a dictionary are different.",
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}
