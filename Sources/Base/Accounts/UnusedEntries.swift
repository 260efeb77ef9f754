extension Dictionary where Value: AnyObject {
    /// Removes the values that are empty and have no other references. The caller prevents other threads from getting a
    /// reference meanwhile.
    package mutating func removeUnused(where isEmpty: (Value) -> Bool) {
        var unused: [Key] = []
        var index = values.startIndex
        while index != values.endIndex {
            if isKnownUniquelyReferenced(&values[index]), isEmpty(values[index]) { unused.append(keys[index]) }
            values.formIndex(after: &index)
        }
        for key in unused { self[key] = nil }
    }
}
