import Coaty

/// The state of the demo's light, and the operation that switches it.
struct DemoLight {
    static let operation = "com.example.demo.switchLight"

    private(set) var isOn = true
    /// 0 to 100.
    private(set) var brightness = 80.0
    /// The energy that the light has used, in watt seconds.
    private(set) var energy = 0.0

    /// Simulates the passing of time.
    mutating func run(seconds: Double) {
        if isOn { energy += seconds * brightness / 10 }
    }

    /// Executes a call.
    ///
    /// - Returns: the new state, as the result for the caller.
    /// - Throws: `ReturnError` that names the invalid parameter; then the state has not changed.
    mutating func perform(_ call: CallEventData) throws(ReturnError) -> AnyCodable {
        guard let parameters = call.parameterDictionary else {
            throw .invalidParameter("parameters must be an object such as {\"on\": true, \"brightness\": 50}")
        }
        if let name = parameters.keys.filter({ !["on", "brightness"].contains($0) }).min() {
            throw .invalidParameter("there is no parameter \(name), only on and brightness")
        }
        guard case .bool(let on) = parameters["on"] else { throw .invalidParameter("on must be true or false") }
        let brightness: Double
        switch parameters["brightness"] {
        case nil: brightness = self.brightness
        case .integer(let number)? where 0...100 ~= number: brightness = Double(number)
        case .double(let number)? where 0...100 ~= number: brightness = number
        default: throw .invalidParameter("brightness must be a number from 0 to 100")
        }
        (isOn, self.brightness) = (on, brightness)
        return ["isOn": .bool(isOn), "brightness": .double(brightness)]
    }

    /// The properties of the light's object. They describe the operation, for people and for tools.
    var properties: [String: AnyCodable] {
        [
            "isOn": .bool(isOn), "brightness": .double(brightness), "energy": .double(energy),
            "operations": [
                [
                    "name": .string(Self.operation),
                    "description": "Switches the demo light, and returns its new state.",
                    "parameters": ["on": "true or false", "brightness": "0 to 100, optional"],
                    "result": ["isOn": "true or false", "brightness": "0 to 100"],
                    "example": ["on": false],
                ]
            ],
        ]
    }
}

extension ReturnError {
    fileprivate static func invalidParameter(_ message: String) -> ReturnError {
        ReturnError(code: RemoteCallErrorCode.invalidParameters.rawValue, message: message)
    }
}
