import Base

/// The environment variables of the gateway.
enum EnvironmentVariables {
    static let prefix = "COATY_GATEWAY_"
    /// The path of the configuration file.
    static let configuration = prefix + "CONFIG"

    /// Returns the variables that are settings.
    ///
    /// - Throws: ``InvalidConfiguration`` if an unknown variable has the gateway's prefix.
    static func settings(in environment: [String: String]) throws(InvalidConfiguration) -> [String: String] {
        let known = Set(GatewaySettings.all.map(\.environmentVariable) + [configuration])
        let own = environment.filter { $0.key.hasPrefix(prefix) && !isOfKubernetes($0.key, $0.value) }
        if let name = own.keys.filter({ !known.contains($0) }).min() {
            let hint = nearest(to: name, among: known).map { "did you mean \($0)? " } ?? ""
            throw InvalidConfiguration(
                description:
                    "\(name): there is no such setting; \(hint)coaty-gateway help serve and help limits list all"
            )
        }
        return own
    }

    /// Returns the variable that an unknown one most likely means: the unknown name may have a few typing errors, or
    /// one additional word.
    private static func nearest(to name: String, among known: Set<String>) -> String? {
        // The prefix is correct, and would make all of them similar.
        let (end, ends) = (name.dropFirst(prefix.count), known.map { String($0.dropFirst(prefix.count)) }.sorted())
        // `BROKER_URL` resembles `BROKER_USER`, but means `BROKER`.
        let suffix = ["_URL", "_URI", "_ADDRESS"].first(where: end.hasSuffix)
        let former = GatewaySettings.limit(formerly: end.lowercased().replacing("_", with: "-"))
        if let former { return Setting.environmentVariable(former) }
        let nearest =
            suffix.flatMap { suffix in ends.first { $0 + suffix == end } }
            ?? NearestName.of(String(end), among: ends)
            ?? ends.first { end.hasPrefix($0 + "_") || end.hasSuffix("_" + $0) }
        return nearest.map { prefix + $0 }
    }

    /// Returns whether Kubernetes sets the variable in each container, for a service named `coaty-gateway` or
    /// `coaty-gateway-…`. One of these variables, `COATY_GATEWAY_PORT`, has the name of a setting, and a value such as
    /// `tcp://10.0.0.1:8080`.
    private static func isOfKubernetes(_ name: String, _ value: String) -> Bool {
        let service = name.dropFirst(prefix.count)
        if service.wholeMatch(of: /(.+_)?PORT/) != nil, value.starts(with: /(tcp|udp|sctp):\/\//) { return true }
        return service.wholeMatch(
            of: /(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)/
        ) != nil
    }
}
