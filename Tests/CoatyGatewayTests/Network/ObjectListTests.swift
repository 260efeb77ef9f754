import Coaty
import Testing
import TestSupport

@testable import Network

/// The sorted list of the objects of a registry.
struct ObjectListTests {
    private static func object(_ position: Int, _ version: Int = 0) -> AliveObject {
        AliveObject(
            objectId: CoatyUUID(wire: "\(position)"),
            coreType: .CoatyObject,
            objectType: WireName("t"),
            parentObjectId: nil,
            owner: CoatyUUID(wire: "o"),
            since: 0,
            changed: version,
            position: UInt64(position),
            bytes: []
        )
    }

    private static func read(_ list: ObjectList, _ count: Int) -> [AliveObject] {
        var (unread, objects) = (UnreadObjects(list, count: count), [AliveObject]())
        while let object = unread.popFirst() {
            objects.append(object)
            guard unread.count == count - objects.count else { return [] }
        }
        return unread.isEmpty ? objects : []
    }

    /// Random changes, at first more insertions than removals, and then the reverse.
    @Test(arguments: 0..<8 as Range<UInt64>)
    func randomChangesKeepTheOrder(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var (list, expected) = (ObjectList(), [Int: Int]())
        var (copy, copied) = (list, expected)
        let highest = 6 * ObjectList.chunkSize
        var next = 0
        for number in 1...(40 * ObjectList.chunkSize) {
            // New objects are usually listed last.
            if next < highest, Int.random(in: 0..<4, using: &random) > 0 { next += 1 }
            let isGrowing = number < 20 * ObjectList.chunkSize
            let position = isGrowing && Bool.random(using: &random) ? next : Int.random(in: 0...next, using: &random)
            if expected[position] == nil {
                guard isGrowing else { continue }
                list.insert(Self.object(position, number))
                expected[position] = number
            } else if Int.random(in: 0..<3, using: &random) == 0 {
                list.replace(with: Self.object(position, number))
                expected[position] = number
            } else if !isGrowing || Int.random(in: 0..<3, using: &random) == 0 {
                list.remove(Self.object(position))
                expected[position] = nil
            }
            guard number % 500 == 0 else { continue }
            try Self.check(list, expected)
            try Self.check(copy, copied)
            (copy, copied) = (list, expected)
        }
        for position in expected.keys { list.remove(Self.object(position)) }
        try Self.check(list, [:])
        try Self.check(copy, copied)
    }

    private static func check(_ list: ObjectList, _ expected: [Int: Int]) throws {
        let sorted = expected.sorted { $0.key < $1.key }
        for objects in [Array(list), read(list, expected.count)] {
            try #require(objects.map { Int($0.position) } == sorted.map(\.key))
            try #require(objects.map(\.changed) == sorted.map(\.value))
        }
    }

    @Test func changesOfUnknownObjectsHaveNoEffect() throws {
        var list = ObjectList()
        list.remove(Self.object(1))
        list.insert(Self.object(2))
        for position in [1, 3] {
            list.remove(Self.object(position))
            list.replace(with: Self.object(position))
        }
        #expect(list.map(\.position) == [2])
    }
}
