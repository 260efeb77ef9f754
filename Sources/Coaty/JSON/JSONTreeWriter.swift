/// Writes encoded values as a text, members in the order of their names, and records the place of each value, so that
/// the text need not be scanned.
struct JSONTreeWriter {
    private var tree: JSONTree
    private(set) var bytes: [UInt8] = []
    private(set) var nodes = ContiguousArray<JSONDocument.Node>()
    /// As ``JSONScanner/wideBytes``.
    private(set) var wideBytes = 0
    private var depth = 0
    /// The members of the objects that are written, those of the inmost at the end.
    private var members: [Int] = []

    init(_ tree: consuming JSONTree) {
        self.tree = tree
        bytes.reserveCapacity(tree.text.count + 2 * tree.values.count)
        nodes.reserveCapacity(2 * tree.values.count)
    }

    /// - Throws: ``JSONSyntaxError`` if the values are nested deeper than a document may be, or the text is too long.
    mutating func write() throws(JSONSyntaxError) {
        // Each value has at most a comma, a colon and two brackets in addition to its texts.
        guard tree.text.count + 4 * tree.values.count < Int(UInt32.max) else {
            throw JSONSyntaxError(offset: 0, reason: "the text is too long")
        }
        try write(0)
    }

    private mutating func write(_ index: Int) throws(JSONSyntaxError) {
        let value = tree.values[index]
        switch value.kind {
        case .null: write(value.text, .null)
        case .bool: write(value.text, .bool)
        case .number: write(value.text, .number)
        case .string: write(value.text, .string)
        case .array: try writeArray(index)
        // Types that encode nothing are empty objects, as in Foundation.
        case .object, .unset: try writeObject(index)
        case .discarded: break
        }
    }

    private mutating func write(_ text: JSONTree.Range, _ kind: JSONDocument.Kind) {
        let start = UInt32(bytes.count)
        bytes.append(contentsOf: tree.text[text.start..<text.end])
        nodes.append(
            .init(
                start: start,
                end: UInt32(bytes.count),
                next: UInt32(nodes.count + 1),
                kind: kind,
                isEscaped: text.isEscaped
            )
        )
    }

    private mutating func writeArray(_ index: Int) throws(JSONSyntaxError) {
        let node = try open(.array, "[")
        var count = 0
        var element = Int(tree.values[index].first)
        while element >= 0 {
            if tree.values[element].kind != .discarded {
                if count > 0 { bytes.append(UInt8(ascii: ",")) }
                try write(element)
                count += 1
            }
            element = Int(tree.values[element].next)
        }
        if count > MemberIndex.maximumElements { markWide(node, MemberIndex.bytes(elements: count)) }
        close(node, "]")
    }

    private mutating func writeObject(_ index: Int) throws(JSONSyntaxError) {
        let node = try open(.object, "{")
        let base = members.count
        var member = Int(tree.values[index].first)
        while member >= 0 {
            if tree.values[member].kind != .discarded { members.append(member) }
            member = Int(tree.values[member].next)
        }
        sortMembers(from: base)
        var count = 0
        for position in base..<members.count {
            let member = members[position]
            if position + 1 < members.count, tree.order(member, members[position + 1]) == 0 {
                let next = members[position + 1]
                if isContinued(member, by: next) { tree.continueParts(of: member, in: next) }
                continue
            }
            if count > 0 { bytes.append(UInt8(ascii: ",")) }
            write(tree.values[member].name, .string)
            bytes.append(UInt8(ascii: ":"))
            try write(member)
            count += 1
        }
        members.removeSubrange(base...)
        if count > MemberIndex.maximumMembers { markWide(node, MemberIndex.bytes(members: count)) }
        close(node, "}")
    }

    private func isContinued(_ earlier: Int, by later: Int) -> Bool {
        tree.values[later].isNested && tree.values[earlier].kind == tree.values[later].kind
    }

    /// Sorts by name; members with the same name by age.
    private mutating func sortMembers(from base: Int) {
        for position in members.indices.dropFirst(base + 1)
        where tree.order(members[position - 1], members[position]) > 0 {
            let tree = tree
            members[base...].sort { left, right in
                let order = tree.order(left, right)
                return order == 0 ? left < right : order < 0
            }
            return
        }
    }

    private mutating func open(_ kind: JSONDocument.Kind, _ bracket: Unicode.Scalar) throws(JSONSyntaxError) -> Int {
        guard depth < JSONDocument.maximumDepth else { throw .tooDeep(at: bytes.count) }
        depth += 1
        nodes.append(.init(start: UInt32(bytes.count), end: 0, next: 0, kind: kind, isEscaped: false))
        bytes.append(UInt8(ascii: bracket))
        return nodes.count - 1
    }

    private mutating func close(_ node: Int, _ bracket: Unicode.Scalar) {
        depth -= 1
        bytes.append(UInt8(ascii: bracket))
        nodes[node].end = UInt32(bytes.count)
        nodes[node].next = UInt32(nodes.count)
    }

    private mutating func markWide(_ node: Int, _ bytes: Int) {
        nodes[node].isWide = true
        wideBytes += bytes
    }
}
