/// The order of the objects that answer a query.
///
/// Missing properties come first, followed by null, false, true, numbers, strings, and finally arrays and objects,
/// which are unordered.
package struct ObjectOrder: Sendable {
    private let properties: [(path: PropertyPath, isAscending: Bool)]

    /// Creates an order by properties, the most significant first.
    package init(_ properties: [OrderByProperty]) {
        self.properties = properties.map { (PropertyPath($0.objectFilterProperties), $0.sortingOrder == .Asc) }
    }

    /// The sort key of an object, without the object's JSON.
    package struct Key: Sendable {
        fileprivate let values: [RankedValue]

        /// The approximate number of bytes that the key uses in memory.
        package var footprint: Int {
            values.reduce(32) { $0 + MemoryLayout<RankedValue>.stride + ($1.value?.footprint ?? 0) }
        }
    }

    /// Reads the key of an object.
    ///
    /// - Throws: ``WorkExceeded``
    package func key(of object: JSONView, _ budget: inout WorkBudget) throws(WorkExceeded) -> Key {
        var values: [RankedValue] = []
        for (path, _) in properties {
            try budget.spend(1 + path.names.count)
            values.append(try RankedValue(path.value(in: object), &budget))
        }
        return Key(values: values)
    }

    /// Returns a number below 0 if the first of two objects comes first, above 0 if the second does, and 0 if the order
    /// does not matter.
    ///
    /// - Throws: ``WorkExceeded``
    package func compare(_ left: Key, _ right: Key, _ budget: inout WorkBudget) throws(WorkExceeded) -> Int {
        for index in properties.indices {
            try budget.spend()
            let comparison = try left.values[index].compare(right.values[index], &budget)
            if comparison != 0 { return properties[index].isAscending ? comparison : -comparison }
        }
        return 0
    }
}

/// A property's value for ordering. Unlike with the operators, values of different kinds are always ordered.
private struct RankedValue: Sendable {
    private let rank: Int
    let value: OrderedValue?

    init(_ view: JSONView?, _ budget: inout WorkBudget) throws(WorkExceeded) {
        switch view?.kind {
        case nil: rank = 0
        case .null: rank = 1
        case .bool: rank = 2
        case .number: rank = 3
        case .string: rank = 4
        case .array, .object: rank = 5
        }
        value = if let view, !view.hasParts { try OrderedValue(FilterValue(view), &budget) } else { nil }
    }

    func compare(_ other: RankedValue, _ budget: inout WorkBudget) throws(WorkExceeded) -> Int {
        guard rank == other.rank else { return rank < other.rank ? -1 : 1 }
        guard let value, let other = other.value else { return 0 }
        return try value.compare(other, &budget) ?? 0
    }
}
