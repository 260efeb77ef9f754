/// A set of hash values of names. It skips strings of a JSON text that can't be one of the names without creating them.
package struct NameFilter: Sendable {
    private let hashes: Set<Int>

    /// Creates a filter for names.
    package init(_ names: some Sequence<String>) {
        hashes = Set(
            names.lazy.map { name in
                var name = name
                return name.withUTF8 { Self.hash(UnsafeRawBufferPointer($0)) }
            }
        )
    }

    /// Returns whether a string may be one of the names. If false, it is certainly not.
    func mayContain(_ string: JSONView) -> Bool {
        guard let bytes = string.plainBytes else { return true }
        return hashes.contains(bytes.withUnsafeBytes(Self.hash))
    }

    private static func hash(_ bytes: UnsafeRawBufferPointer) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: bytes)
        return hasher.finalize()
    }
}
