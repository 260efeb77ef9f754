/// Distinguishes texts. It protects against accidental equality, but not against attacks.
package enum Fingerprint {
    /// Returns a 64-bit FNV-1a hash as 16 hexadecimal digits.
    package static func of(_ bytes: some Sequence<UInt8>) -> String {
        let hash = bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
