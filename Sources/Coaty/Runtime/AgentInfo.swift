/// The package, build and configuration of an agent, as log objects contain them.
public struct AgentInfo: Codable, Sendable, Hashable {
    /// The package.
    public struct Package: Codable, Sendable, Hashable {
        /// The package's name.
        public var name: String
        /// The package's version.
        public var version: String

        /// Creates a package.
        public init(name: String, version: String) {
            self.name = name
            self.version = version
        }
    }

    /// The build.
    public struct Build: Codable, Sendable, Hashable {
        /// When it was built, as an ISO 8601 date and time.
        public var buildDate: String
        /// The mode, such as `development` or `production`.
        public var buildMode: String

        /// Creates a build.
        public init(buildDate: String, buildMode: String) {
            self.buildDate = buildDate
            self.buildMode = buildMode
        }
    }

    /// The configuration.
    public struct Config: Codable, Sendable, Hashable {
        /// The host of the services that the agent uses.
        public var serviceHost: String

        /// Creates a configuration.
        public init(serviceHost: String) {
            self.serviceHost = serviceHost
        }
    }

    /// The package.
    public var packageInfo: Package
    /// The build.
    public var buildInfo: Build
    /// The configuration.
    public var configInfo: Config

    /// Creates the information.
    public init(packageInfo: Package, buildInfo: Build, configInfo: Config) {
        self.packageInfo = packageInfo
        self.buildInfo = buildInfo
        self.configInfo = configInfo
    }
}
