//! The one macro of the crate: declares a thrift struct, union or enum.

macro_rules! thrift {
    // Structs that keep what they do not know.
    (
        $(#[$meta:meta])*
        $vis:vis struct $Name:ident {$(
            $(#[$field_meta:meta])*
            $id:literal $need:ident $field:ident: $Type:ty $(as $how:ident)?,
        )*}
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        $vis struct $Name {
            $($(#[$field_meta])* pub $field: $crate::thrift::derive::thrift!(@type $need $Type),)*
            /// Fields that are not known, kept for writing.
            pub unknown: $crate::thrift::Unknown,
        }
    };

    // Structs without room for what they do not know.
    (
        $(#[$meta:meta])*
        $vis:vis closed struct $Name:ident {$(
            $(#[$field_meta:meta])*
            $id:literal $need:ident $field:ident: $Type:ty $(as $how:ident)?,
        )*}
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        $vis struct $Name {
            $($(#[$field_meta])* pub $field: $crate::thrift::derive::thrift!(@type $need $Type),)*
        }
    };

    // Unions: a member without a payload is an empty struct on the wire.
    (
        $(#[$meta:meta])*
        $vis:vis union $Name:ident {$(
            $(#[$member_meta:meta])*
            $id:literal $Member:ident $(($Type:ty))? $text:literal,
        )+}
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        $vis enum $Name {
            $($(#[$member_meta])* $Member $(($Type))?,)+
            /// A member that is not known, or none at all.
            Unrecognized($crate::thrift::Unknown),
        }

        impl Default for $Name {
            /// The union without a member.
            fn default() -> Self {
                Self::Unrecognized($crate::thrift::Unknown::default())
            }
        }
    };

    // Enums: numbers that are not known stay numbers.
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident {$(
            $(#[$variant_meta:meta])*
            $Variant:ident = $number:literal $text:literal,
        )+}
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis enum $Name {
            $($(#[$variant_meta])* $Variant,)+
            /// A number that is not known.
            Unknown(i32),
        }

        impl $Name {
            /// Every variant that is known, by number.
            pub const ALL: &[Self] = &[$(Self::$Variant,)+];
        }

        impl From<i32> for $Name {
            fn from(number: i32) -> Self {
                match number {
                    $($number => Self::$Variant,)+
                    _ => Self::Unknown(number),
                }
            }
        }

        impl From<$Name> for i32 {
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
    };

    (@type optional $Type:ty) => { Option<$Type> };
    (@type required $Type:ty) => { $Type };
    (@type defaulted $Type:ty) => { $Type };
}
pub(crate) use thrift;
