extension ObjectFilterCondition {
    /// Passes all properties to `visit`, operands included, and checks that each begins with the name of a root.
    ///
    /// - Parameters:
    ///   - roots: the names of the objects that the condition refers to.
    ///   - pointer: the JSON Pointer of the condition.
    /// - Throws: ``PayloadError`` if a property does not begin with a root, or the condition is nested too deeply.
    package func checkRoots(
        _ roots: [String],
        at pointer: String,
        depth: Int = 0,
        _ visit: (ObjectFilterProperty) -> Void
    ) throws(PayloadError) {
        func check(_ property: ObjectFilterProperty, _ pointer: String) throws(PayloadError) {
            guard let name = property.names.first, roots.contains(where: { $0.utf8.elementsEqual(name.utf8) }) else {
                throw .invalid(pointer: pointer, reason: "must begin with one of \(roots.joined(separator: ", "))")
            }
            visit(property)
        }
        guard depth <= Self.maximumDepth else {
            throw .invalid(pointer: pointer, reason: "is nested deeper than \(Self.maximumDepth)")
        }
        switch self {
        case .property(let property, let expression):
            try check(property, "\(pointer)/0")
            for (index, operand) in expression.operands.enumerated() {
                guard case .property(let property) = operand else { continue }
                try check(property, "\(pointer)/1/\(index + 1)/property")
            }
        case .and(let list):
            for (index, condition) in list.enumerated() {
                try condition.checkRoots(roots, at: "\(pointer)/and/\(index)", depth: depth + 1, visit)
            }
        case .or(let list):
            for (index, condition) in list.enumerated() {
                try condition.checkRoots(roots, at: "\(pointer)/or/\(index)", depth: depth + 1, visit)
            }
        case .not(let condition): try condition.checkRoots(roots, at: "\(pointer)/not", depth: depth + 1, visit)
        }
    }
}
