//! VARIANT values from JSON and to JSON by `serde_json`, as the library would do it without a
//! parser and a writer of its own. Decimals come as doubles: to keep all their digits,
//! `serde_json` needs its feature `arbitrary_precision`, which is slower, and which a library must
//! not switch on for the whole program.

use std::fmt;

use marquetry::variant::{Variant, VariantBuilder};
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Deserializer, Serialize, Serializer};

/// Appends the value of a JSON text.
pub fn append(builder: &mut VariantBuilder, text: &str) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_str(text);
    Append(builder).deserialize(&mut json)?;
    json.end()
}

struct Append<'a>(&'a mut VariantBuilder);

impl<'de> DeserializeSeed<'de> for Append<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Append<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.0.append(value).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.0.append(Variant::integer(value)).map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        let value = match i64::try_from(value) {
            Ok(value) => Variant::integer(value),
            Err(_) => Variant::Decimal(value.into(), 0),
        };
        self.0.append(value).map_err(E::custom)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.0.append(Variant::Double(value)).map_err(E::custom)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.0.append(value).map_err(E::custom)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.0.append(()).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.0.begin_list().map_err(A::Error::custom)?;
        while list.next_element_seed(Append(self.0))?.is_some() {}
        self.0.end_list().map_err(A::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        self.0.begin_object().map_err(A::Error::custom)?;
        while object.next_key_seed(Name(self.0))?.is_some() {
            object.next_value_seed(Append(self.0))?;
        }
        self.0.end_object().map_err(A::Error::custom)
    }
}

struct Name<'a>(&'a mut VariantBuilder);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<(), E> {
        self.0.name(name).map_err(E::custom)
    }
}

/// Appends the JSON text of a value.
pub fn write(value: &Variant<'_>, out: &mut Vec<u8>) -> serde_json::Result<()> {
    serde_json::to_writer(out, &Json(value))
}

struct Json<'a, 'v>(&'a Variant<'v>);

impl Serialize for Json<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Variant::Object(object) => {
                let mut map = to.serialize_map(Some(object.len()))?;
                for field in object.iter() {
                    let (name, value) = field.map_err(S::Error::custom)?;
                    map.serialize_entry(name, &Json(&value))?;
                }
                map.end()
            }
            Variant::List(list) => {
                let mut seq = to.serialize_seq(Some(list.len()))?;
                for value in list.iter() {
                    seq.serialize_element(&Json(&value.map_err(S::Error::custom)?))?;
                }
                seq.end()
            }
            Variant::Null => to.serialize_unit(),
            Variant::Boolean(value) => to.serialize_bool(*value),
            Variant::Int8(value) => to.serialize_i8(*value),
            Variant::Int16(value) => to.serialize_i16(*value),
            Variant::Int32(value) => to.serialize_i32(*value),
            Variant::Int64(value) => to.serialize_i64(*value),
            Variant::Float(value) => to.serialize_f32(*value),
            Variant::Double(value) => to.serialize_f64(*value),
            Variant::String(value) => to.serialize_str(value),
            // The events of this bench have no others.
            other => Err(S::Error::custom(format!("not written here: {other:?}"))),
        }
    }
}
