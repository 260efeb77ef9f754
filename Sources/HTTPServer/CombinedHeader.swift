import CMicroHTTPD
import Glibc

/// Returns the values of all header fields with a name, in any case, joined by commas; nil if there is none.
func combinedHeaderValue(_ name: String, of connection: OpaquePointer) -> String? {
    /// The values that the callback collects.
    struct Search {
        let name: String
        var value: String?
    }
    var search = Search(name: name)
    withUnsafeMutablePointer(to: &search) { search in
        cmhd_examine(
            connection,
            { context, kind, name, nameSize, value, valueSize in
                guard let context, let name, let value, kind == .HEADER_KIND else { return .YES }
                let search = context.assumingMemoryBound(to: Search.self)
                guard nameSize == search.pointee.name.utf8.count, strcasecmp(name, search.pointee.name) == 0 else {
                    return .YES
                }
                let text = String(decoding: UnsafeRawBufferPointer(start: value, count: valueSize), as: UTF8.self)
                search.pointee.value = search.pointee.value.map { "\($0),\(text)" } ?? text
                return .YES
            },
            search
        )
    }
    return search.value
}
