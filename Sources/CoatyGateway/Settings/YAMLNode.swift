import CYAML
import Coaty

/// A text that is not one YAML document.
struct YAMLError: Error {
    let line: Int
    let reason: String
}

/// A node of a YAML document, read with libyaml. An alias is the node that it refers to.
final class YAMLNode: Sendable {
    enum Content: Sendable {
        /// A text without quotes may be another value than a string. The tag is nil if the text has none.
        case scalar(String, isPlain: Bool, tag: String?)
        case sequence([YAMLNode])
        case mapping([(key: YAMLNode, value: YAMLNode)])
    }

    /// The line where the node begins, from 1.
    let line: Int
    let content: Content
    /// The number of levels, also of those behind aliases.
    fileprivate let height: Int

    fileprivate init(line: Int, _ content: Content) {
        self.line = line
        self.content = content
        height =
            switch content {
            case .scalar: 0
            case .sequence(let elements): 1 + (elements.map(\.height).max() ?? 0)
            case .mapping(let members): 1 + (members.map { max($0.key.height, $0.value.height) }.max() ?? 0)
            }
    }

    /// The text of a scalar.
    var text: String? {
        if case .scalar(let text, _, _) = content { text } else { nil }
    }

    var mapping: [(key: YAMLNode, value: YAMLNode)]? {
        if case .mapping(let members) = content { members } else { nil }
    }

    /// Parses a text with at most one document.
    ///
    /// - Returns: nil if there is no document.
    static func parse(_ text: String) throws(YAMLError) -> YAMLNode? {
        guard !text.isEmpty else { return nil }
        // libyaml reads the bytes until the end of the closure.
        return try Array(text.utf8).withUnsafeBufferPointer { bytes throws(YAMLError) in
            var composer = Composer(bytes)
            return try composer.document()
        }
    }
}

/// Composes nodes from the events of libyaml.
private struct Composer: ~Copyable {
    private let text: UnsafeBufferPointer<UInt8>
    private let parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
    private let event = UnsafeMutablePointer<yaml_event_t>.allocate(capacity: 1)
    /// The complete nodes with an anchor: a node can't contain itself.
    private var anchors: [String: YAMLNode] = [:]

    init(_ text: UnsafeBufferPointer<UInt8>) {
        self.text = text
        event.initialize(to: yaml_event_t())
        parser.initialize(to: yaml_parser_t())
        // It fails only without memory.
        precondition(yaml_parser_initialize(parser) == 1)
        yaml_parser_set_input_string(parser, text.baseAddress, text.count)
    }

    deinit {
        yaml_event_delete(event)
        yaml_parser_delete(parser)
        event.deallocate()
        parser.deallocate()
    }

    mutating func document() throws(YAMLError) -> YAMLNode? {
        try next()
        try next()
        guard event.pointee.type == YAML_DOCUMENT_START_EVENT else { return nil }
        try next()
        let root = try node(depth: 0)
        // The end of the document.
        try next()
        try next()
        guard event.pointee.type == YAML_STREAM_END_EVENT else { throw error("begins a second document") }
        return root
    }

    /// Reads the next event.
    private func next() throws(YAMLError) {
        yaml_event_delete(event)
        guard yaml_parser_parse(parser, event) == 0 else { return }
        let failed = parser.pointee
        if failed.error == YAML_READER_ERROR {
            let line = text.prefix(failed.problem_offset).count { $0 == UInt8(ascii: "\n") } + 1
            throw YAMLError(line: line, reason: "is not YAML")
        }
        let reason = failed.problem.map { String(cString: $0) } ?? "is not YAML"
        throw YAMLError(line: failed.problem_mark.line + 1, reason: reason)
    }

    private var line: Int { event.pointee.start_mark.line + 1 }

    private func error(_ reason: String) -> YAMLError { YAMLError(line: line, reason: reason) }

    /// Releasing a node releases those in it, level by level.
    private func check(_ depth: Int) throws(YAMLError) {
        guard depth <= JSONDocument.maximumDepth else {
            throw error("nested deeper than \(JSONDocument.maximumDepth) levels")
        }
    }

    /// Composes the node that begins with the current event.
    private mutating func node(depth: Int) throws(YAMLError) -> YAMLNode {
        try check(depth)
        let (line, data) = (line, event.pointee.data)
        let anchor: String?
        let content: YAMLNode.Content
        switch event.pointee.type {
        case YAML_ALIAS_EVENT:
            guard let node = anchors[String(cString: data.alias.anchor)] else { throw error("found undefined alias") }
            try check(depth + node.height)
            return node
        case YAML_SCALAR_EVENT:
            anchor = Self.string(data.scalar.anchor)
            let text = String(
                decoding: UnsafeBufferPointer(start: data.scalar.value, count: data.scalar.length),
                as: UTF8.self
            )
            let isPlain = data.scalar.style == YAML_PLAIN_SCALAR_STYLE
            content = .scalar(text, isPlain: isPlain, tag: Self.string(data.scalar.tag))
        case YAML_SEQUENCE_START_EVENT:
            anchor = Self.string(data.sequence_start.anchor)
            var elements: [YAMLNode] = []
            while case _ = try next(), event.pointee.type != YAML_SEQUENCE_END_EVENT {
                elements.append(try node(depth: depth + 1))
            }
            content = .sequence(elements)
        case YAML_MAPPING_START_EVENT:
            anchor = Self.string(data.mapping_start.anchor)
            var members: [(key: YAMLNode, value: YAMLNode)] = []
            var names: Set<String> = []
            while case _ = try next(), event.pointee.type != YAML_MAPPING_END_EVENT {
                let key = try node(depth: depth + 1)
                if let name = key.text, !names.insert(name).inserted {
                    throw YAMLError(line: key.line, reason: "has a key twice: \(name)")
                }
                try next()
                members.append((key, try node(depth: depth + 1)))
            }
            content = .mapping(members)
        default: throw error("is not YAML")
        }
        let node = YAMLNode(line: line, content)
        if let anchor { anchors[anchor] = node }
        return node
    }

    private static func string(_ text: UnsafeMutablePointer<yaml_char_t>?) -> String? {
        text.map { String(cString: $0) }
    }
}
