extension Mistake {
    private static let operators =
        "must be an operator: LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual, Between, NotBetween, Like, "
        + "Equals, NotEquals, Exists, NotExists, Contains, NotContains, In, NotIn, or a number from 0 to 14."
    private static let form = "must be [property, [operator, operand…]], or have one of and, or, not."
    private static let filter = "must be a condition, not an object filter with conditions"
    private static let condition = "must be an object filter, not a condition: use"

    private static func objects(_ filter: String) -> String { "GET /v1/objects?filter=\(filter.percentEncoded)" }

    private static func stream(_ filter: String) -> String {
        "GET /v1/sse/channel?channelId=c&filter=\(filter.percentEncoded)"
    }

    private static func subscription(_ filter: String) -> String {
        #"{"op":"subscribe","id":"x","event":"channel","channelId":"c","filter":\#(filter)}"#
    }

    private static func query(_ filter: String) -> String { #"{"objectTypes":["t"],"objectFilter":\#(filter)}"# }

    /// Invalid conditions and filters.
    static let filters: [Row] = [
        (objects(#"["name",["Equal","x"]]"#), nil, "400 invalid-parameter: filter at /1/0 \(operators)"),
        (stream(#"["name",["=","x"]]"#), nil, "400 invalid-parameter: filter at /1/0 \(operators)"),
        (subscription(#"["n",[15,1]]"#), nil, "400 invalid-value: /filter/1/0 \(operators)"),
        (
            "POST /v1/query", query(#"{"conditions":["n",["Is",1]]}"#),
            "400 invalid-value: /objectFilter/conditions/1/0 \(operators)"
        ),
        (
            "POST /v1/call/add", #"{"filter":{"conditions":["n",["Is",1]]}}"#,
            "400 invalid-value: /filter/conditions/1/0 \(operators)"
        ),
        (
            objects(#"["n",["Between",1]]"#), nil,
            "400 invalid-parameter: filter at /1 must have two operands after Between."
        ),
        (
            objects(#"["n",["Exists",true]]"#), nil,
            "400 invalid-parameter: filter at /1 must have no operand after Exists."
        ),
        (objects(#"["n","Equals","x"]"#), nil, "400 invalid-parameter: filter \(form)"),
        (objects(#"{"name":"x"}"#), nil, "400 invalid-parameter: filter \(form)"),
        (
            objects(#"{"conditions":["n",["Equals","x"]]}"#), nil,
            #"400 invalid-parameter: filter \#(filter): use ["n",["Equals","x"]]."#
        ),
        (
            stream(#"{"conditions":{"and":[["n",[7,1]],["m",[9]]]}}"#), nil,
            #"400 invalid-parameter: filter \#(filter): use {"and":[["n",[7,1]],["m",[9]]]}."#
        ),
        (
            subscription(#"{"conditions":["n",["In",[1, 2]]],"take":5}"#), nil,
            #"400 invalid-value: /filter \#(filter): use ["n",["In",[1, 2]]]."#
        ),
        (
            "POST /v1/discover?until=" + #"{"conditions":["n",["Exists"]]}"#.percentEncoded, "{}",
            #"400 invalid-parameter: until \#(filter): use ["n",["Exists"]]."#
        ),
        (subscription(#"{"conditions":["n"]}"#), nil, "400 invalid-value: /filter \(filter)."),
        (
            "POST /v1/query", query(#"["n",["Equals",1]]"#),
            #"400 invalid-value: /objectFilter \#(condition) {"conditions":["n",["Equals",1]]}."#
        ),
        (
            "POST /v1/query", query(#"{"or":[["n",["Exists"]]]}"#),
            #"400 invalid-value: /objectFilter \#(condition) {"conditions":{"or":[["n",["Exists"]]]}}."#
        ),
        (
            "POST /v1/call/add", #"{"filter":["floor",["Equals",7]]}"#,
            #"400 invalid-value: /filter \#(condition) {"conditions":["floor",["Equals",7]]}."#
        ),
        (
            "POST /v1/query", query(#"{"condition":["n",["Exists"]]}"#),
            "400 invalid-value: /objectFilter/condition is unknown, must be one of conditions, "
                + "orderByProperties, take, skip."
        ),
    ]
}
