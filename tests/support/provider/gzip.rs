//! A gzip stream written by hand that is small on the wire and large once inflated.
//!
//! One final deflate block with the fixed Huffman codes holds the text as literals, a first space,
//! and then the match "258 bytes from one byte back", 13 bits each: about 158 bytes out of one.

/// The longest match deflate knows.
const MATCH: usize = 258;

/// The text followed by spaces up to `inflated` bytes, as a gzip stream.
pub(super) fn padded(text: &[u8], inflated: usize) -> Vec<u8> {
    let spaces = inflated.saturating_sub(text.len());
    let mut bits = Bits::default();
    bits.value(0b1, 1); // the final block
    bits.value(0b01, 2); // with fixed codes
    for &byte in text {
        bits.literal(byte);
    }
    let mut left = spaces;
    if left > 0 {
        bits.literal(b' ');
        left -= 1;
    }
    while left >= MATCH {
        bits.code(0b1100_0101, 8); // symbol 285: length 258
        bits.code(0, 5); // distance 1
        left -= MATCH;
    }
    for _ in 0..left {
        bits.literal(b' ');
    }
    bits.code(0, 7); // the end of the block

    let mut stream = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    stream.extend(bits.finish());
    stream.extend(crc32(text, spaces).to_le_bytes());
    let length = (text.len() + spaces) & 0xffff_ffff;
    stream.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    stream
}

/// A bit stream, filled from the lowest bit of each byte.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    pending: u32,
    used: u32,
}

impl Bits {
    /// A plain value goes lowest bit first.
    fn value(&mut self, value: u32, width: u32) {
        self.pending |= value << self.used;
        self.used += width;
        while self.used >= 8 {
            self.bytes.push(self.pending.to_le_bytes()[0]);
            self.pending >>= 8;
            self.used -= 8;
        }
    }

    /// A Huffman code goes highest bit first.
    fn code(&mut self, code: u32, width: u32) {
        self.value(code.reverse_bits() >> (32 - width), width);
    }

    /// A byte as it is, by the fixed code table.
    fn literal(&mut self, byte: u8) {
        match u32::from(byte) {
            low @ 0..=143 => self.code(0x30 + low, 8),
            high => self.code(0x190 + high - 144, 9),
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.used > 0 {
            self.bytes.push(self.pending.to_le_bytes()[0]);
        }
        self.bytes
    }
}

/// The checksum of the text and the spaces after it, without building them.
fn crc32(text: &[u8], spaces: usize) -> u32 {
    let mut crc = u32::MAX;
    for &byte in text {
        crc = crc_step(crc, byte);
    }
    for _ in 0..spaces {
        crc = crc_step(crc, b' ');
    }
    !crc
}

fn crc_step(crc: u32, byte: u8) -> u32 {
    CRC[usize::from(crc.to_le_bytes()[0] ^ byte)] ^ (crc >> 8)
}

/// The remainders of all bytes; one look-up per byte keeps a debug build quick.
static CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte: u32 = 0;
    while byte < 256 {
        let mut remainder = byte;
        let mut bit = 0;
        while bit < 8 {
            let odd = remainder & 1 == 1;
            remainder >>= 1;
            if odd {
                remainder ^= 0xedb8_8320;
            }
            bit += 1;
        }
        table[byte as usize] = remainder;
        byte += 1;
    }
    table
};
