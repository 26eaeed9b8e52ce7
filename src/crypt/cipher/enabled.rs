//! Selects the ciphers of this build, AWS-LC if it is available, and the random generator.

#[cfg(feature = "aws-lc")]
pub(in crate::crypt) use super::aws_lc::AwsLcAes as Aes;
#[cfg(not(feature = "aws-lc"))]
pub(in crate::crypt) use super::portable::RustCryptoAes as Aes;

use crate::error::{Error, Result};

/// Bytes that are zeroized when they are dropped.
pub(in crate::crypt) type Secret = zeroize::Zeroizing<Vec<u8>>;

/// Fills `out` from the generator of the operating system.
pub(in crate::crypt) fn random(out: &mut [u8]) -> Result<()> {
    getrandom::fill(out).map_err(|e| {
        Error::crypto(format_args!("the random generator of the operating system fails: {e}"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::backend::Cipher;
    use super::super::portable;
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
            .collect()
    }

    fn known_answers<C: Cipher>() {
        // Test cases 4, 10 and 16 of "The Galois/Counter Mode of Operation" (McGrew, Viega).
        let plain = hex(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        );
        let aad = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let nonce: [u8; 12] = hex("cafebabefacedbaddecaf888").try_into().unwrap();
        let key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
        let expected = [
            (
                16,
                "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
                "5bc94fbc3221a5db94fae95ae7121a47",
            ),
            (
                24,
                "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710",
                "2519498e80f1478f37ba55bd6d27618c",
            ),
            (
                32,
                "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
                "76fc6ece0f4e1768cddf8853bb2d551b",
            ),
        ];
        for (len, cipher, tag) in expected {
            let aes = C::new(&key[..len]).unwrap();
            let mut data = plain.clone();
            let made = aes.seal(nonce, &aad, &mut data).unwrap();
            assert_eq!((&data, made.to_vec()), (&hex(cipher), hex(tag)), "{len} bytes");
            aes.open(nonce, &aad, &mut data, made).unwrap();
            assert_eq!(data, plain);
            let mut wrong = hex(cipher);
            assert!(aes.open(nonce, b"other", &mut wrong, made).is_none());
            // GCM encrypts by CTR, its data beginning with counter 2: after one block of ours.
            let mut stream = [&[0; 16][..], &plain].concat();
            aes.ctr(nonce, &mut stream).unwrap();
            assert_eq!(&stream[16..], hex(cipher), "{len} bytes");
        }
        assert!(C::new(&key[..20]).is_none());
        assert!(C::new(&[]).is_none());
    }

    #[test]
    fn ciphers_give_the_answers_of_the_standard() {
        known_answers::<portable::RustCryptoAes>();
        known_answers::<Aes>();
    }

    #[test]
    fn backends_agree() {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..200 {
            let len = [16, 24, 32][random.usize(..3)];
            let mut key = vec![0; len];
            random.fill(&mut key);
            let mut data = vec![0; random.usize(..3000)];
            random.fill(&mut data);
            let nonce: [u8; 12] = std::array::from_fn(|_| random.u8(..));
            let (ours, theirs) =
                (Aes::new(&key).unwrap(), portable::RustCryptoAes::new(&key).unwrap());
            let (mut a, mut b) = (data.clone(), data.clone());
            let tags = (ours.seal(nonce, &key, &mut a), theirs.seal(nonce, &key, &mut b));
            assert_eq!((tags.0, &a), (tags.1, &b), "seed {seed}");
            ours.ctr(nonce, &mut a).unwrap();
            theirs.ctr(nonce, &mut b).unwrap();
            assert_eq!(a, b, "seed {seed}");
        }
    }
}
