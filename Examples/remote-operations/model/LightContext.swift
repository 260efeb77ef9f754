public import Coaty

/// The operation that switches lights, and the constraints of its parameters.
public enum LightControl {
    /// The operation's name.
    public static let operation = "coaty.examples.remoteops.switchLight"

    /// Returns whether a color has four valid numbers: red, green and blue from 0 to 255, and alpha from 0 to 1.
    public static func isValid(color: [Double]) -> Bool {
        color.count == 4 && color[..<3].allSatisfy { 0...255 ~= $0 } && 0...1 ~= color[3]
    }
}

/// The location of a light, which the filter of a call is matched with.
public final class LightContext: CoatyObject {
    /// `coaty.examples.remoteops.LightContext`
    public override class var objectType: String {
        register(objectType: "coaty.examples.remoteops.LightContext", with: self)
    }

    /// The id of the light.
    public let lightId: CoatyUUID
    /// The building's number.
    public let building: Int
    /// The floor's number.
    public let floor: Int
    /// The room's number.
    public let room: Int

    /// Creates the context of a light.
    public init(lightId: CoatyUUID, building: Int, floor: Int, room: Int) {
        self.lightId = lightId
        self.building = building
        self.floor = floor
        self.room = room
        super.init(
            coreType: .CoatyObject,
            objectType: LightContext.objectType,
            objectId: .init(),
            name: "LightContext"
        )
        parentObjectId = lightId
    }

    private enum Keys: String, CodingKey {
        case lightId, building, floor, room
    }

    /// Decodes a context.
    public required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        lightId = try container.decode(CoatyUUID.self, forKey: .lightId)
        building = try container.decode(Int.self, forKey: .building)
        floor = try container.decode(Int.self, forKey: .floor)
        room = try container.decode(Int.self, forKey: .room)
        try super.init(from: decoder)
    }

    /// Encodes the context.
    public override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(lightId, forKey: .lightId)
        try container.encode(building, forKey: .building)
        try container.encode(floor, forKey: .floor)
        try container.encode(room, forKey: .room)
    }
}
