//! Just enough of gzip to read a stream of one block with fixed codes, checksum included.

/// The text in the stream; panics when the stream is not sound.
pub fn gunzip(stream: &[u8]) -> Vec<u8> {
    assert_eq!(stream[..4], [0x1f, 0x8b, 8, 0], "a gzip header without extras");
    let (deflated, trailer) = stream[10..].split_at(stream.len() - 18);
    let mut bits = Bits { bytes: deflated, at: 0 };
    assert_eq!((bits.low_first(1), bits.low_first(2)), (1, 1), "one fixed block");
    let mut text = Vec::new();
    loop {
        match bits.symbol() {
            256 => break,
            285 => {
                assert_eq!(bits.high_first(5), 0, "distance one");
                let last = *text.last().expect("something to repeat");
                text.resize(text.len() + 258, last);
            }
            literal => text.push(u8::try_from(literal).expect("a literal")),
        }
    }
    assert_eq!(bits.at.div_ceil(8), deflated.len(), "nothing left over");
    let length = u32::try_from(text.len()).expect("small");
    assert_eq!(trailer[4..], length.to_le_bytes());
    assert_eq!(trailer[..4], crc32(&text).to_le_bytes());
    text
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn bit(&mut self) -> u32 {
        let bit = self.bytes[self.at / 8] >> (self.at % 8) & 1;
        self.at += 1;
        u32::from(bit)
    }

    fn low_first(&mut self, width: u32) -> u32 {
        (0..width).fold(0, |value, place| value | self.bit() << place)
    }

    fn high_first(&mut self, width: u32) -> u32 {
        (0..width).fold(0, |value, _| value << 1 | self.bit())
    }

    /// One symbol by the table of RFC 1951, section 3.2.6.
    fn symbol(&mut self) -> u32 {
        let seven = self.high_first(7);
        if seven <= 0b001_0111 {
            return 256 + seven;
        }
        let eight = seven << 1 | self.bit();
        match eight {
            0x30..=0xbf => eight - 0x30,
            0xc0..=0xc7 => 280 + eight - 0xc0,
            _ => 144 + (eight << 1 | self.bit()) - 0x190,
        }
    }
}

/// Bit by bit, and so nothing like the table that is being checked.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    })
}

#[test]
fn the_checksum_has_its_well_known_value() {
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
}

#[test]
fn a_stream_of_a_common_compressor_is_read() {
    // Made by a stock deflate with the fixed strategy.
    let stream = [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xab, 0x56, 0x4a, 0x54, 0xb2, 0x32, 0xac,
        0x05, 0x00, 0xaf, 0xac, 0x1b, 0x56, 0x07, 0x00, 0x00, 0x00,
    ];
    assert_eq!(gunzip(&stream), br#"{"a":1}"#);
}
