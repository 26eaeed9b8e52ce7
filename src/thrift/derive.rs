//! The one macro of the crate declares a thrift struct, union or enum, with the code that reads and
//! writes it.
//!
//! ```text
//! thrift! {
//!     pub struct KeyValue {                      // keeps the fields that it does not know
//!         1 required key: String as text,        // id, need, name, type; text: may be non-UTF-8
//!         2 optional value: String as text,      // Option<String>
//!     }
//! }
//! ```
//!
//! * Needs: `required` (absent is an error), `optional` (an `Option`), `defaulted` (absent is the
//!   default), `omittable` (the same, and empty is not written). Ids ascend, up to 31.
//! * `closed struct` keeps no unknown fields and can be built from its known fields alone; the
//!   struct around it keeps what it loses, see [`Unknown`](super::Unknown).
//! * `view struct Name of "Thrift"` is read-only: a second type for a thrift struct, with some of
//!   its fields.
//! * `view struct Name<'a> of "Thrift"` borrows from the bytes that it is read from.
//! * `union`: a member without a payload is an empty struct on the wire.
//! * `enum`: numbers that are not known are kept.

macro_rules! thrift {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Name:ident {$(
            $(#[$field_meta:meta])*
            $id:literal $need:ident $field:ident: $Type:ty $(as $how:ident)?,
        )*}
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        #[non_exhaustive]
        $vis struct $Name {
            $($(#[$field_meta])* pub $field: $crate::thrift::derive::thrift!(@type $need $Type),)*
            /// Fields that are not known, kept for writing.
            pub unknown: $crate::thrift::Unknown,
        }

        $crate::thrift::derive::thrift! {
            @read [$Name] ['de] [] ['de] stringify!($Name), open {$($id $need $field: $Type $(as $how)?,)*}
        }

        $crate::thrift::derive::thrift! {
            @describe $Name {$($id $field: $Type [$($field_meta)*],)*}
        }

        impl $crate::thrift::Write for $Name {
            fn write(&self, out: &mut Vec<u8>) -> $crate::Result<()> {
                #[allow(unused_mut, reason = "a struct may have no fields")]
                let mut last = 0;
                $(
                    // Nearly always nothing is kept.
                    let kept = !self.unknown.is_empty()
                        && self.unknown.write_known($id, &mut last, out, |reader, header| {
                            let value = $crate::thrift::derive::thrift!(
                                @value reader header $Type $(as $how)?
                            );
                            Ok($crate::thrift::derive::thrift!(@some $need value) == self.$field)
                        })?;
                    if !kept {
                        $crate::thrift::derive::thrift!(@write $need $id self.$field, last, out);
                    }
                )*
                self.unknown.write(&[$($id),*], &mut last, out)?;
                $crate::memory::push(out, $crate::thrift::wire::STOP)
            }
        }
    };

    (
        $(#[$meta:meta])*
        $vis:vis closed struct $Name:ident {$(
            $(#[$field_meta:meta])*
            $id:literal $need:ident $field:ident: $Type:ty $(as $how:ident)?,
        )*}
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        #[non_exhaustive]
        $vis struct $Name {
            $($(#[$field_meta])* pub $field: $crate::thrift::derive::thrift!(@type $need $Type),)*
        }

        $crate::thrift::derive::thrift! {
            @read [$Name] ['de] [] ['de] stringify!($Name), closed {$($id $need $field: $Type $(as $how)?,)*}
        }

        $crate::thrift::derive::thrift! {
            @describe $Name {$($id $field: $Type [$($field_meta)*],)*}
        }

        impl $crate::thrift::Write for $Name {
            fn write(&self, out: &mut Vec<u8>) -> $crate::Result<()> {
                let mut last = 0;
                $($crate::thrift::derive::thrift!(@write $need $id self.$field, last, out);)*
                $crate::memory::push(out, $crate::thrift::wire::STOP)
            }
        }
    };

    (
        $(#[$meta:meta])*
        $vis:vis view struct $Name:ident of $thrift:literal {$(
            $(#[$field_meta:meta])*
            $id:literal $need:ident $field:ident: $Type:ty $(as $how:ident)?,
        )*}
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        #[non_exhaustive]
        $vis struct $Name {
            $($(#[$field_meta])* pub $field: $crate::thrift::derive::thrift!(@type $need $Type),)*
        }

        $crate::thrift::derive::thrift! {
            @read [$Name] ['de] [] ['de] $thrift, view {$($id $need $field: $Type $(as $how)?,)*}
        }
    };

    (
        $(#[$meta:meta])*
        $vis:vis view struct $Name:ident<$a:lifetime> of $thrift:literal {$(
            $(#[$field_meta:meta])*
            $id:literal $need:ident $field:ident: $Type:ty $(as $how:ident)?,
        )*}
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        #[non_exhaustive]
        $vis struct $Name<$a> {
            $($(#[$field_meta])* pub $field: $crate::thrift::derive::thrift!(@type $need $Type),)*
        }

        $crate::thrift::derive::thrift! {
            @read [$Name<$a>] [$a] [$a] [] $thrift, view {$($id $need $field: $Type $(as $how)?,)*}
        }
    };

    (
        $(#[$meta:meta])*
        $vis:vis union $Name:ident {$(
            $(#[$member_meta:meta])*
            $id:literal $Member:ident $(($Type:ty))? $text:literal,
        )+}
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        $vis enum $Name {
            $($(#[$member_meta])* $Member $(($Type))?,)+
            /// A member that is not known, or none at all.
            Unrecognized($crate::thrift::Unknown),
        }

        impl $crate::thrift::describe::Describe for $Name {
            const DESCRIPTION: $crate::thrift::describe::Description =
                $crate::thrift::describe::Description::Struct(
                    &$crate::thrift::describe::StructDescription {
                        name: stringify!($Name),
                        fields: &[$($crate::thrift::describe::FieldDescription {
                            id: $id,
                            name: $text,
                            attributes: &[$(stringify!($member_meta)),*],
                            value: $crate::thrift::derive::thrift!(@payload $($Type)?),
                        },)+],
                    },
                );
        }

        impl $Name {
            /// Reads the members up to the stop; `id` is that of the current one.
            fn read_members(
                reader: &mut $crate::thrift::ThriftReader<'_>,
                id: &mut i16,
            ) -> $crate::Result<Self> {
                let mut member = None;
                let mut unknown = $crate::thrift::Unknown::default();
                while let Some(header) = reader.field(*id)? {
                    *id = header.id;
                    match header.id {
                        $($id if header.ty == $crate::thrift::wire::STRUCT => {
                            member = Some($crate::thrift::derive::thrift!(
                                @member reader $Member $(($Type))?
                            ));
                        })+
                        _ => reader.keep(header, &mut unknown)?,
                    }
                }
                let Some(member) = member else {
                    return Ok(Self::Unrecognized(unknown));
                };
                if !unknown.is_empty() {
                    reader.set_lossy();
                }
                Ok(member)
            }
        }

        impl Default for $Name {
            /// The union without a member.
            fn default() -> Self {
                Self::Unrecognized($crate::thrift::Unknown::default())
            }
        }

        impl $crate::thrift::Read<'_> for $Name {
            const TYPE: u8 = $crate::thrift::wire::STRUCT;

            #[inline]
            fn read(reader: &mut $crate::thrift::ThriftReader<'_>) -> $crate::Result<Self> {
                let mut id = 0;
                Self::read_members(reader, &mut id).map_err(|error| {
                    let member = match id {
                        $($id => $text,)+
                        _ => "",
                    };
                    $crate::thrift::in_field(error, stringify!($Name), id, member)
                })
            }

            #[inline]
            fn is_absent(&self) -> bool {
                matches!(self, Self::Unrecognized(unknown) if unknown.is_empty())
            }
        }

        impl $crate::thrift::Write for $Name {
            fn write(&self, out: &mut Vec<u8>) -> $crate::Result<()> {
                let mut last = 0;
                match self {
                    $($crate::thrift::derive::thrift!(@pattern member $Member $(($Type))?) => {
                        $crate::thrift::derive::thrift!(
                            @write_member $id last out $(member $Type)?
                        );
                    })+
                    Self::Unrecognized(unknown) => unknown.write(&[], &mut last, out)?,
                }
                $crate::memory::push(out, $crate::thrift::wire::STOP)
            }
        }

        impl std::fmt::Display for $Name {
            /// The name in the specification, without parameters; the id of an unknown member.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$Member { .. } => f.write_str($text),)+
                    Self::Unrecognized(unknown) => match unknown.fields().next() {
                        Some(field) => write!(f, "unknown ({})", field.id),
                        None => f.write_str("none"),
                    },
                }
            }
        }
    };

    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident {$(
            $(#[$variant_meta:meta])*
            $Variant:ident = $number:literal $text:literal,
        )+}
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        $vis enum $Name {
            $($(#[$variant_meta])* $Variant,)+
            /// A number that is not known.
            Unknown(i32),
        }

        impl $Name {
            /// Every variant that is known, by number.
            pub const ALL: &[Self] = &[$(Self::$Variant,)+];
        }

        impl $crate::thrift::describe::Describe for $Name {
            const DESCRIPTION: $crate::thrift::describe::Description =
                $crate::thrift::describe::Description::Enum(
                    &$crate::thrift::describe::EnumDescription {
                        name: stringify!($Name),
                        text: |number| Self::from(number).to_string(),
                    },
                );
        }

        impl From<i32> for $Name {
            #[inline]
            fn from(number: i32) -> Self {
                match number {
                    $($number => Self::$Variant,)+
                    _ => Self::Unknown(number),
                }
            }
        }

        impl From<$Name> for i32 {
            #[inline]
            fn from(value: $Name) -> Self {
                match value {
                    $($Name::$Variant => $number,)+
                    $Name::Unknown(number) => number,
                }
            }
        }

        impl Default for $Name {
            /// The variant with the number 0.
            fn default() -> Self {
                Self::from(0)
            }
        }

        impl std::fmt::Display for $Name {
            /// The name in the specification; the number of an unknown value.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$Variant => f.write_str($text),)+
                    Self::Unknown(number) => write!(f, "unknown ({number})"),
                }
            }
        }

        impl $crate::thrift::Read<'_> for $Name {
            const TYPE: u8 = $crate::thrift::wire::I32;

            #[inline]
            fn read(reader: &mut $crate::thrift::ThriftReader<'_>) -> $crate::Result<Self> {
                reader.i32().map(Self::from)
            }
        }

        impl $crate::thrift::Write for $Name {
            fn write(&self, out: &mut Vec<u8>) -> $crate::Result<()> {
                i32::from(*self).write(out)
            }
        }
    };

    // What `inspect` calls a struct and its fields.
    (@describe $Name:ident {$($id:literal $field:ident: $Type:ty [$($field_meta:meta)*],)*}) => {
        impl $crate::thrift::describe::Describe for $Name {
            const DESCRIPTION: $crate::thrift::describe::Description =
                $crate::thrift::describe::Description::Struct(
                    &$crate::thrift::describe::StructDescription {
                        name: stringify!($Name),
                        fields: &[$($crate::thrift::describe::FieldDescription {
                            id: $id,
                            name: stringify!($field),
                            attributes: &[$(stringify!($field_meta)),*],
                            value: <$Type as $crate::thrift::describe::Describe>::DESCRIPTION,
                        },)*],
                    },
                );
        }
    };

    (@payload $Type:ty) => { <$Type as $crate::thrift::describe::Describe>::DESCRIPTION };
    (@payload) => { $crate::thrift::describe::EMPTY };

    // How a struct is read, whatever its kind.
    (
        @read [$($Name:tt)*] [$bytes:lifetime] [$($of_struct:lifetime)?] [$($of_fn:lifetime)?] $thrift:expr, $kind:ident {$(
            $id:literal $need:ident $field:ident: $Type:ty $(as $how:ident)?,
        )*}
    ) => {
        impl$(<$of_struct>)? $($Name)* {
            /// Reads the fields up to the stop; `id` is that of the current one.
            fn read_fields$(<$of_fn>)?(
                &mut self,
                reader: &mut $crate::thrift::ThriftReader<$bytes>,
                id: &mut i16,
            ) -> $crate::Result<()> {
                const REQUIRED: u32 = 0 $(| $crate::thrift::derive::thrift!(@bit $need $id))*;
                #[allow(unused_variables, reason = "a struct may have no fields")]
                let value = &mut *self;
                #[allow(unused_mut, reason = "a struct may have no fields")]
                let mut seen = 0u32;
                let mut next = reader.field(0)?;
                #[allow(unused_labels, reason = "a struct may have no fields")]
                'fields: while let Some(header) = next {
                    #[allow(unused_mut, reason = "a struct may have no fields")]
                    let mut header = header;
                    // Fields nearly always ascend. Each has its own branch, which is predicted
                    // where a jump through a table is not.
                    $(if header.id == $id {
                        *id = $id;
                        if <$Type as $crate::thrift::Read<'_>>::fits(header.ty, reader.rest()) {
                            let before = reader.rest();
                            $crate::thrift::derive::thrift!(
                                @into $need value.$field, reader header $Type $(as $how)?
                            );
                            seen |= 1 << $id;
                            $crate::thrift::derive::thrift!(@lossy $kind reader header before value);
                        } else {
                            $crate::thrift::derive::thrift!(@unexpected $need reader header);
                        }
                        match reader.field($id)? {
                            Some(field) => header = field,
                            None => break 'fields,
                        }
                    })*
                    *id = header.id;
                    if false $(|| header.id == $id)* {
                        // A field after a later one: searched from the start.
                        next = Some(header);
                        continue;
                    }
                    $crate::thrift::derive::thrift!(@unknown $kind reader header value);
                    next = reader.field(header.id)?;
                }
                let missing = REQUIRED & !seen;
                if missing == 0 {
                    return Ok(());
                }
                *id = missing.trailing_zeros().try_into().unwrap_or_default();
                Err($crate::Error::malformed($crate::Spec::Thrift, "a required field is absent"))
            }
        }

        impl<$bytes> $crate::thrift::Read<$bytes> for $($Name)* {
            const TYPE: u8 = $crate::thrift::wire::STRUCT;

            #[inline]
            fn read(reader: &mut $crate::thrift::ThriftReader<$bytes>) -> $crate::Result<Self> {
                let mut value = Self::default();
                value.read_over(reader)?;
                Ok(value)
            }

            #[inline]
            fn read_over(
                &mut self,
                reader: &mut $crate::thrift::ThriftReader<$bytes>,
            ) -> $crate::Result<()> {
                let mut id = 0;
                self.read_fields(reader, &mut id).map_err(|error| {
                    let field = match id {
                        $($id => stringify!($field).trim_start_matches("r#"),)*
                        _ => "",
                    };
                    $crate::thrift::in_field(error, $thrift, id, field)
                })
            }
        }
    };

    (@type optional $Type:ty) => { Option<$Type> };
    (@type $need:ident $Type:ty) => { $Type };

    (@some optional $value:ident) => {
        if $crate::thrift::Read::is_absent(&$value) { None } else { Some($value) }
    };
    (@some $need:ident $value:ident) => { $value };

    (@bit required $id:literal) => { 1 << $id };
    (@bit $need:ident $id:literal) => { 0 };

    (@value $reader:ident $header:ident $Type:ty as $how:ident) => {{
        let _: $crate::thrift::Field = $header;
        $reader.$how()?
    }};
    (@value $reader:ident $header:ident $Type:ty) => {{
        let mut value = <$Type>::default();
        $crate::thrift::Read::read_field(&mut value, $reader, $header.ty)?;
        value
    }};

    // Reads a field where it stays. It may occur twice: the last one counts, so each begins with
    // the default.
    (@into optional $value:ident.$field:ident, $reader:ident $header:ident $Type:ty) => {
        let slot = $value.$field.insert(<$Type>::default());
        $crate::thrift::Read::read_field(slot, $reader, $header.ty)?;
        if $crate::thrift::Read::is_absent(slot) {
            $value.$field = None;
        }
    };
    (@into $need:ident $value:ident.$field:ident, $reader:ident $header:ident $Type:ty) => {
        $value.$field = <$Type>::default();
        $crate::thrift::Read::read_field(&mut $value.$field, $reader, $header.ty)?;
    };
    (
        @into $need:ident $value:ident.$field:ident,
        $reader:ident $header:ident $Type:ty as $how:ident
    ) => {
        let read = $crate::thrift::derive::thrift!(@value $reader $header $Type as $how);
        $value.$field = $crate::thrift::derive::thrift!(@some $need read);
    };

    (@unexpected required $reader:ident $header:ident) => {
        return Err($crate::Error::malformed(
            $crate::Spec::Thrift,
            format_args!(
                "a required field, or its elements, of another type (wire type {})",
                $header.ty
            ),
        ))
    };
    (@unexpected $need:ident $reader:ident $header:ident) => { $reader.skip($header.ty)? };

    // An open struct keeps a known field that holds more than its Rust value; a closed one leaves
    // that to the struct around it.
    (@lossy open $reader:ident $header:ident $before:ident $value:ident) => {
        if $reader.take_lossy() {
            $value.unknown.push($header, $reader.since($before))?;
        }
    };
    (@lossy closed $reader:ident $header:ident $before:ident $value:ident) => {
        let _ = $before;
    };

    (@lossy view $reader:ident $header:ident $before:ident $value:ident) => {{
        let _ = $before;
        $reader.take_lossy();
    }};

    (@unknown open $reader:ident $header:ident $value:ident) => {
        $reader.keep($header, &mut $value.unknown)?
    };
    (@unknown closed $reader:ident $header:ident $value:ident) => { $reader.skip_lossy($header)? };
    (@unknown view $reader:ident $header:ident $value:ident) => { $reader.skip($header.ty)? };

    (@write optional $id:literal $self:ident.$field:ident, $last:ident, $out:ident) => {
        if let Some(value) = &$self.$field {
            $crate::thrift::Write::write_field(value, $id, &mut $last, $out)?;
        }
    };
    (@write omittable $id:literal $self:ident.$field:ident, $last:ident, $out:ident) => {
        if !$self.$field.is_empty() {
            $crate::thrift::Write::write_field(&$self.$field, $id, &mut $last, $out)?;
        }
    };
    (@write $need:ident $id:literal $self:ident.$field:ident, $last:ident, $out:ident) => {
        $crate::thrift::Write::write_field(&$self.$field, $id, &mut $last, $out)?
    };

    (@member $reader:ident $Member:ident ($Type:ty)) => {
        Self::$Member(<$Type as $crate::thrift::Read<'_>>::read($reader)?)
    };
    (@member $reader:ident $Member:ident) => {{
        $reader.empty_struct()?;
        Self::$Member
    }};

    (@pattern $name:ident $Member:ident ($Type:ty)) => { Self::$Member($name) };
    (@pattern $name:ident $Member:ident) => { Self::$Member };

    (@write_member $id:literal $last:ident $out:ident $member:ident $Type:ty) => {
        $crate::thrift::Write::write_field($member, $id, &mut $last, $out)?
    };
    (@write_member $id:literal $last:ident $out:ident) => {
        $crate::thrift::empty_struct_field($id, &mut $last, $out)?
    };
}
pub(crate) use thrift;
