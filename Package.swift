// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),
  .treatAllWarnings(as: .error),
  .enableExperimentalFeature("Lifetimes"),
  .enableExperimentalFeature("RawLayout"),
  .enableExperimentalFeature("BuiltinModule"),
  .enableExperimentalFeature("SuppressedAssociatedTypes"),
]

// Set by `make unit-tests`, which asks the compiler to optimise nothing. The plugin is left out, because its tool compiles the core once
// more.
let isForTests = Context.environment["HOLDFAST_TESTS"] != nil

// The fuzzer calls one function from one thread, so globals need no isolation.
let fuzzed: [SwiftSetting] = [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]

let service = TargetDependencyCondition.when(traits: ["Service"])

// The command line has the default proof key, unless a key file is named. Only then does its build need the plugin.
let hasProofKeys = !isForTests && Context.environment["HOLDFAST_MPK_KEY"] != nil

let package = Package(
  name: "holdfast",
  products: [
    .executable(name: "holdfast", targets: ["holdfast"]),
    .executable(name: "holdfast-service", targets: ["holdfast-service"]),
    .executable(name: "holdfast-carrier", targets: ["holdfast-carrier"]),
    .executable(name: "holdfast-simulate", targets: ["holdfast-simulate"]),
    .library(name: "HoldfastCore", targets: ["HoldfastCore"]),
    .library(name: "HoldfastFirmware", targets: ["HoldfastFirmware"]),
    .library(name: "HoldfastReplay", targets: ["HoldfastReplay"]),
    .library(name: "HoldfastMeasurement", targets: ["HoldfastMeasurement"]),
    .library(name: "HoldfastLinux", targets: ["HoldfastLinux"]),
    .library(name: "HoldfastOpenSSL", targets: ["HoldfastOpenSSL"]),
    .library(name: "HoldfastTransport", targets: ["HoldfastTransport"]),
    .library(name: "HoldfastProver", targets: ["HoldfastProver"]),
    .library(name: "HoldfastSDK", targets: ["HoldfastSDK"]),
    .library(name: "HoldfastDevice", targets: ["HoldfastDevice"]),
    .plugin(name: "HoldfastProofKeys", targets: ["HoldfastProofKeys"]),
    .library(name: "HoldfastAuthenticator", targets: ["HoldfastAuthenticator"]),
    .library(name: "HoldfastUser", targets: ["HoldfastUser"]),
    .library(name: "HoldfastIssuer", targets: ["HoldfastIssuer"]),
    .library(name: "HoldfastVault", targets: ["HoldfastVault"]),
    // The C interface. `make library` links it as libholdfast.so.1.
    .library(name: "holdfast-c", type: .dynamic, targets: ["HoldfastC"]),
  ],
  // Without this trait, nothing that only the online service needs is fetched or compiled.
  traits: [
    .trait(name: "Service", description: "The online service with its HTTP server."), .default(enabledTraits: []),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
    .package(url: "https://github.com/hummingbird-project/swift-mustache", from: "2.1.1"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    // The core: standard library only, for Linux and as Embedded Swift.
    .target(name: "CBarrier"),
    .target(
      name: "HoldfastCore", dependencies: ["CBarrier"],
      swiftSettings: strict + [.treatWarning("EmbeddedRestrictions", as: .error)]),

    // The device for a microcontroller, independent of the board: also standard library only.
    .target(
      name: "HoldfastFirmware", dependencies: ["HoldfastCore"],
      swiftSettings: strict + [.treatWarning("EmbeddedRestrictions", as: .error)]),

    // The parts of Linux that other modules share: threads, descriptors, clocks, random bytes.
    .target(name: "CHost"),
    .target(name: "HoldfastLinux", dependencies: ["HoldfastCore", "CHost"], swiftSettings: strict),

    // The implementations of the core's protocols on Linux.
    .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    .target(name: "COpenSSLStart", dependencies: ["COpenSSL"]),
    .target(
      name: "HoldfastOpenSSL", dependencies: ["HoldfastCore", "COpenSSL", "COpenSSLStart"], swiftSettings: strict),
    .target(
      name: "HoldfastFormats", dependencies: ["HoldfastCore", "HoldfastOpenSSL"], swiftSettings: strict),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .target(name: "HoldfastStorage", dependencies: ["HoldfastLinux", "CSQLite"], swiftSettings: strict),
    .systemLibrary(name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    .target(
      name: "HoldfastDatabase", dependencies: ["HoldfastLinux", "HoldfastStorage", "CPostgreSQL"],
      swiftSettings: strict),
    .systemLibrary(name: "CBlueZ", pkgConfig: "bluez", providers: [.apt(["libbluetooth-dev"])]),
    .target(
      name: "HoldfastTransport", dependencies: ["HoldfastCore", "HoldfastLinux", "CBlueZ"], swiftSettings: strict),

    // The issuer, with stores and keys of one's own; and an attestation service and a backend in a folder.
    .target(
      name: "HoldfastIssuer",
      dependencies: ["HoldfastLinux", "HoldfastCore", "HoldfastFormats", "HoldfastOpenSSL", "HoldfastStorage"],
      swiftSettings: strict),

    // The online service of a fleet, without HTTP.
    .target(
      name: "HoldfastService",
      dependencies: [
        "HoldfastLinux", "HoldfastCore", "HoldfastFormats", "HoldfastOpenSSL", "HoldfastStorage", "HoldfastDatabase",
        "HoldfastIssuer",
      ],
      swiftSettings: strict),

    // The device.
    .target(
      name: "HoldfastDevice",
      dependencies: [
        "HoldfastLinux", "HoldfastCore", "HoldfastFirmware", "HoldfastFormats", "HoldfastOpenSSL", "HoldfastStorage",
        "HoldfastTransport",
      ],
      swiftSettings: strict),

    // The person's side: one-time passwords and seals.
    .systemLibrary(name: "CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
    .systemLibrary(name: "CQREncode", pkgConfig: "libqrencode", providers: [.apt(["libqrencode-dev"])]),
    .target(
      name: "HoldfastQRCode", dependencies: ["HoldfastCore", "HoldfastOpenSSL", "CQREncode"], swiftSettings: strict),
    .target(
      name: "HoldfastAuthenticator",
      dependencies: [
        "HoldfastLinux", "HoldfastCore", "HoldfastFormats", "HoldfastOpenSSL", "HoldfastStorage", "CExpat",
      ],
      swiftSettings: strict),

    // The prover.
    .plugin(name: "HoldfastProofKeys", capability: .buildTool(), dependencies: ["ProofKeysTool"]),
    .executableTarget(name: "ProofKeysTool", dependencies: ["HoldfastFormats"], swiftSettings: strict),
    .target(name: "CLibraryVersion"),
    .target(
      name: "HoldfastMeasurement",
      dependencies: ["HoldfastLinux", "HoldfastCore", "HoldfastOpenSSL", "CHost", "CLibraryVersion"],
      swiftSettings: strict),
    .target(
      name: "HoldfastProver",
      dependencies: [
        "HoldfastLinux", "HoldfastCore", "HoldfastFormats", "HoldfastMeasurement", "HoldfastOnline", "HoldfastOpenSSL",
        "HoldfastTransport",
      ],
      swiftSettings: strict),

    // The exchanges of a user's authenticator with a device.
    .target(
      name: "HoldfastUser",
      dependencies: [
        "HoldfastLinux", "HoldfastCore", "HoldfastFormats", "HoldfastOpenSSL", "HoldfastTransport",
        "HoldfastAuthenticator", "HoldfastProver",
      ],
      swiftSettings: strict),

    // An adversary against any device, and an impostor against any prover.
    .target(
      name: "HoldfastAttack",
      dependencies: [
        "HoldfastLinux", "HoldfastCore", "HoldfastFormats", "HoldfastIssuer", "HoldfastMeasurement", "HoldfastOpenSSL",
        "HoldfastProver", "HoldfastTransport",
      ],
      swiftSettings: strict),

    // The encryption of an app's data, and the agent that holds its key for a while.
    .target(
      name: "HoldfastVault", dependencies: ["HoldfastLinux", "HoldfastCore", "HoldfastMeasurement", "HoldfastOpenSSL"],
      swiftSettings: strict),

    // Enrolling over the network: what the prover and its carrier tell each other, and the carrier, a separate process.
    .target(
      name: "HoldfastOnline", dependencies: ["HoldfastCore", "HoldfastFormats", "HoldfastLinux"], swiftSettings: strict),
    .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .target(
      name: "HoldfastCarrier",
      dependencies: ["HoldfastCore", "HoldfastFormats", "HoldfastLinux", "HoldfastOnline", "CCurl"],
      swiftSettings: strict),
    .executableTarget(
      name: "holdfast-carrier",
      dependencies: ["HoldfastCarrier", "HoldfastCore", "HoldfastFormats", "HoldfastLinux", "HoldfastOnline"],
      swiftSettings: strict),

    // The library of an app that also fetches tokens, keys and texts from the online service.
    .target(
      name: "HoldfastSDK",
      dependencies: [
        "HoldfastCore", "HoldfastFormats", "HoldfastLinux", "HoldfastMeasurement", "HoldfastOnline", "HoldfastOpenSSL",
        "HoldfastProver", "HoldfastVersion",
      ],
      swiftSettings: strict),

    // Test vectors: a device that replays them anywhere, and their files on Linux.
    .target(
      name: "HoldfastReplay", dependencies: ["HoldfastCore"],
      swiftSettings: strict + [.treatWarning("EmbeddedRestrictions", as: .error)]),
    .target(
      name: "HoldfastVectors",
      dependencies: [
        "COpenSSL", "HoldfastAuthenticator", "HoldfastCore", "HoldfastDevice", "HoldfastFirmware", "HoldfastFormats",
        "HoldfastIssuer", "HoldfastLinux", "HoldfastOpenSSL", "HoldfastReplay", "HoldfastTransport", "HoldfastUser",
      ],
      swiftSettings: strict),

    // Pictures of distributions in SVG, and what other charts are drawn with.
    .target(name: "HoldfastCharts", swiftSettings: strict),

    // The simulation of a fleet whose provers carry bulletins, and its program.
    .target(
      name: "HoldfastSimulation",
      dependencies: [
        "HoldfastCharts", "HoldfastCore", "HoldfastDatabase", "HoldfastDevice", "HoldfastFormats", "HoldfastIssuer",
        "HoldfastLinux", "HoldfastOpenSSL", "HoldfastProver", "HoldfastService", "HoldfastStorage",
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "holdfast-simulate",
      dependencies: [
        "HoldfastFormats", "HoldfastLinux", "HoldfastSimulation", "HoldfastVersion",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),

    // The version, from git.
    .plugin(name: "VersionPlugin", capability: .buildTool(), exclude: ["describe"]),
    .target(name: "HoldfastVersion", swiftSettings: strict, plugins: ["VersionPlugin"]),

    // The C interface, which holdfast.h declares and the compiler compares with it.
    .systemLibrary(name: "CHoldfast"),
    .target(
      name: "HoldfastC",
      dependencies: [
        "CHoldfast", "HoldfastAuthenticator", "HoldfastCore", "HoldfastDevice", "HoldfastFormats", "HoldfastLinux",
        "HoldfastMeasurement", "HoldfastOpenSSL", "HoldfastProver", "HoldfastStorage", "HoldfastTransport",
        "HoldfastUser", "HoldfastVersion",
      ],
      swiftSettings: strict),

    // The command line.
    .executableTarget(
      name: "holdfast",
      dependencies: [
        "HoldfastAttack", "HoldfastCharts", "HoldfastCore", "HoldfastOpenSSL", "HoldfastFormats",
        "HoldfastAuthenticator", "HoldfastDevice",
        "HoldfastFirmware", "HoldfastIssuer", "HoldfastLinux", "HoldfastMeasurement", "HoldfastOnline",
        "HoldfastProver", "HoldfastQRCode", "HoldfastStorage", "HoldfastTransport", "HoldfastUser", "HoldfastVault",
        "HoldfastVectors",
        "HoldfastVersion",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Histogram", package: "hdrhistogram-swift"),
      ],
      swiftSettings: strict + (hasProofKeys ? [.define("HAS_PROOF_KEYS")] : []),
      plugins: hasProofKeys ? ["HoldfastProofKeys"] : []),

    // The online service with its HTTP server. Without the trait, it is a program that only says so.
    .executableTarget(
      name: "holdfast-service",
      dependencies: [
        "HoldfastCore", "HoldfastDatabase", "HoldfastFormats", "HoldfastIssuer", "HoldfastLinux", "HoldfastMeasurement",
        "HoldfastOnline", "HoldfastOpenSSL", "HoldfastQRCode", "HoldfastService", "HoldfastVersion",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Hummingbird", package: "hummingbird", condition: service),
        .product(name: "HummingbirdCore", package: "hummingbird", condition: service),
        .product(name: "HummingbirdHTTP2", package: "hummingbird", condition: service),
        .product(name: "Mustache", package: "swift-mustache", condition: service),
        .product(name: "NIOCore", package: "swift-nio", condition: service),
        .product(name: "NIOPosix", package: "swift-nio", condition: service),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: service),
        .product(name: "NIOTLS", package: "swift-nio", condition: service),
        .product(name: "NIOSSL", package: "swift-nio-ssl", condition: service),
        .product(name: "Logging", package: "swift-log", condition: service),
        .product(name: "Metrics", package: "swift-metrics", condition: service),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: service),
        .product(name: "UnixSignals", package: "swift-service-lifecycle", condition: service),
      ],
      swiftSettings: strict),

    // Tests.
    .testTarget(
      name: "HoldfastCoreTests", dependencies: ["HoldfastCore", "HoldfastOpenSSL", "TestSupport"], swiftSettings: strict
    ),
    .testTarget(name: "HoldfastOptimisedTests", dependencies: ["HoldfastCore"], swiftSettings: strict),
    .testTarget(
      name: "HoldfastFirmwareTests",
      dependencies: [
        "HoldfastLinux", "HoldfastFirmware", "HoldfastCore", "HoldfastDevice", "HoldfastFormats", "HoldfastOpenSSL",
        "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastOpenSSLTests",
      dependencies: ["HoldfastLinux", "HoldfastOpenSSL", "HoldfastCore", "HoldfastFormats", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastIssuerTests",
      dependencies: [
        "HoldfastLinux", "HoldfastIssuer", "HoldfastOpenSSL", "HoldfastCore", "HoldfastFormats", "HoldfastStorage",
        "PowerCut", "TestSupport",
      ],
      exclude: ["Fixtures"], swiftSettings: strict),
    .testTarget(
      name: "HoldfastQRCodeTests", dependencies: ["HoldfastQRCode", "HoldfastCore", "HoldfastOpenSSL"],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastAuthenticatorTests",
      dependencies: [
        "HoldfastLinux", "HoldfastAuthenticator", "HoldfastCore", "HoldfastFormats", "HoldfastOpenSSL",
        "HoldfastStorage", "PowerCut", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastDeviceTests",
      dependencies: [
        "HoldfastLinux", "HoldfastDevice", "HoldfastCore", "HoldfastFirmware", "HoldfastFormats", "HoldfastOpenSSL",
        "HoldfastStorage", "HoldfastTransport", "PowerCut", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastFormatsTests", dependencies: ["HoldfastFormats", "HoldfastCore", "HoldfastOpenSSL"],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastStorageTests", dependencies: ["HoldfastLinux", "HoldfastStorage", "PowerCut", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastDatabaseTests",
      dependencies: ["HoldfastLinux", "HoldfastDatabase", "HoldfastStorage", "TestPostgreSQL", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastServiceTests",
      dependencies: [
        "HoldfastCore", "HoldfastDatabase", "HoldfastDevice", "HoldfastFormats", "HoldfastIssuer", "HoldfastLinux",
        "HoldfastOpenSSL", "HoldfastProver", "HoldfastService", "HoldfastStorage", "TestPostgreSQL", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastTransportTests", dependencies: ["HoldfastLinux", "HoldfastTransport", "CBlueZ", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastCommandLineTests",
      dependencies: [
        "HoldfastLinux", "holdfast", "HoldfastFormats",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastChartsTests", dependencies: ["HoldfastCharts", "HoldfastAuthenticator", "bench-charts"],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastSimulationTests", dependencies: ["HoldfastSimulation", "HoldfastFormats"], swiftSettings: strict),
    .testTarget(
      name: "HoldfastVectorsTests",
      dependencies: ["HoldfastVectors", "HoldfastCore", "HoldfastOpenSSL", "HoldfastFormats", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastLinuxTests", dependencies: ["HoldfastLinux", "PowerCut", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "HoldfastMeasurementTests",
      dependencies: [
        "HoldfastLinux", "HoldfastMeasurement", "HoldfastCore", "HoldfastOpenSSL", "MeasurementProbe", "ReadmeProver",
        "PowerCut", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastProverTests",
      dependencies: [
        "HoldfastLinux", "HoldfastProver", "HoldfastCore", "HoldfastFormats", "HoldfastMeasurement", "HoldfastOpenSSL",
        "HoldfastStorage", "HoldfastTransport", "PowerCut", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastUserTests",
      dependencies: [
        "HoldfastUser", "HoldfastAuthenticator", "HoldfastCore", "HoldfastDevice", "HoldfastFormats", "HoldfastIssuer",
        "HoldfastLinux", "HoldfastMeasurement", "HoldfastOpenSSL", "HoldfastProver", "HoldfastTransport", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastVaultTests",
      dependencies: [
        "HoldfastLinux", "HoldfastVault", "HoldfastCore", "HoldfastMeasurement", "HoldfastOpenSSL", "PowerCut",
        "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastSDKTests",
      dependencies: [
        "HoldfastCore", "HoldfastFormats", "HoldfastLinux", "HoldfastMeasurement", "HoldfastOnline", "HoldfastOpenSSL",
        "HoldfastProver", "HoldfastSDK", "PowerCut", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastOnlineTests", dependencies: ["HoldfastOnline", "HoldfastCore", "HoldfastFormats"],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastCarrierTests",
      dependencies: ["HoldfastCarrier", "HoldfastOnline", "HoldfastCore", "HoldfastFormats"], swiftSettings: strict),
    .target(
      name: "VerifyPathCheck", dependencies: ["HoldfastCore", "HoldfastFirmware"], path: "Tests/VerifyPathCheck",
      exclude: ["run"],
      swiftSettings: strict),
    .target(
      name: "TestSupport", dependencies: ["HoldfastLinux", "HoldfastCore", "HoldfastFirmware", "HoldfastOpenSSL"],
      path: "Tests/TestSupport", swiftSettings: strict),
    .target(
      name: "TestPostgreSQL", dependencies: ["HoldfastLinux", "TestSupport"], path: "Tests/TestPostgreSQL",
      swiftSettings: strict),
    // The readers of outside bytes, as functions for the fuzzer (`make fuzz`), and the replay of its corpora.
    .target(
      name: "FuzzTargets",
      dependencies: [
        "HoldfastAuthenticator", "HoldfastCarrier", "HoldfastCore", "HoldfastDevice", "HoldfastFirmware",
        "HoldfastFormats", "HoldfastIssuer", "HoldfastLinux", "HoldfastMeasurement", "HoldfastOnline",
        "HoldfastOpenSSL", "HoldfastProver", "HoldfastQRCode", "HoldfastReplay", "HoldfastSDK", "HoldfastService",
        "HoldfastTransport", "HoldfastVault", "HoldfastVectors", "TestSupport",
      ],
      path: "Tests/Fuzz/Targets", swiftSettings: fuzzed),
    .testTarget(
      name: "FuzzCorpusTests", dependencies: ["FuzzTargets"], path: "Tests/Fuzz/Replay", swiftSettings: strict),
    .target(name: "CPowerCut", path: "Tests/CPowerCut"),
    .target(name: "CReadOnlyDisk", path: "Tests/CReadOnlyDisk"),
    .target(
      name: "PowerCut", dependencies: ["CPowerCut", "CReadOnlyDisk", "HoldfastLinux"], path: "Tests/PowerCut",
      swiftSettings: strict),
    .target(name: "CDisturbance", path: "Tests/CDisturbance"),
    .target(name: "CSecretMarks", path: "Tests/CSecretMarks"),
    .executableTarget(
      name: "ConstantTime",
      dependencies: [
        "CSecretMarks", "HoldfastAuthenticator", "HoldfastCore", "HoldfastIssuer", "HoldfastLinux",
        "HoldfastMeasurement", "HoldfastOpenSSL", "HoldfastVault", "TestSupport",
      ],
      path: "Tests/ConstantTime/Program", swiftSettings: strict),
    .executableTarget(
      name: "MeasurementProbe",
      dependencies: ["HoldfastMeasurement", "HoldfastLinux", "HoldfastCore", "HoldfastOpenSSL", "CDisturbance"],
      path: "Tests/MeasurementProbe", swiftSettings: strict),
    .executableTarget(
      name: "DeviceTwin",
      dependencies: [
        "HoldfastLinux", "HoldfastDevice", "HoldfastCore", "HoldfastFirmware", "HoldfastOpenSSL", "HoldfastStorage",
      ],
      path: "Tests/DeviceTwin", swiftSettings: strict),
    .executableTarget(
      name: "bench-charts", dependencies: ["HoldfastCharts", "HoldfastFormats", "HoldfastLinux"],
      path: "Tests/ChartTool",
      swiftSettings: strict),
    .executableTarget(
      name: "Benchmark",
      dependencies: [
        "HoldfastCore", "HoldfastDevice", "HoldfastLinux", "HoldfastMeasurement", "HoldfastOpenSSL", "HoldfastStorage",
        "HoldfastTransport", "TestSupport",
      ],
      path: "Tests/Benchmark/Program", swiftSettings: strict),
    .executableTarget(
      name: "ReadmeProver", dependencies: ["HoldfastMeasurement"], path: "Tests/ReadmeProver", swiftSettings: strict),
  ]
)

if isForTests {
  // The modules under test are optimised nevertheless, exactly as in a release: Swift 6.3 has miscompiled spans over inline storage
  // only there. So are tests that specialise such code, or test what it leaves in memory. `holdfast` and `holdfast-service` are not.
  let optimised = [SwiftSetting.unsafeFlags(["-Xfrontend", "-O", "-Xfrontend", "-enable-default-cmo"])]
  let specialising: Set = ["HoldfastFirmwareTests", "HoldfastOpenSSLTests", "HoldfastOptimisedTests"]
  for target in package.targets {
    let isModule = target.type == .regular || target.type == .executable && target.path != nil
    guard isModule || specialising.contains(target.name) else { continue }
    target.swiftSettings = (target.swiftSettings ?? []) + optimised
  }
  package.products.removeAll { $0.name == "HoldfastProofKeys" }
  package.targets.removeAll { ["HoldfastProofKeys", "ProofKeysTool", "VerifyPathCheck"].contains($0.name) }
}

// Only for `make fuzz`: libFuzzer contains the main function, and would replace that of every other program.
if Context.environment["HOLDFAST_FUZZ"] != nil {
  (package.products, package.dependencies) = ([], [])
  package.targets.removeAll { target in
    target.type == .test || target.type == .executable || target.type == .plugin && target.name != "VersionPlugin"
  }
  let compared = [1, 2, 4, 8].flatMap { ["trace_cmp\($0)", "trace_const_cmp\($0)"] }
  let wrapped = ["8bit_counters_init", "pcs_init"] + compared
  package.targets += [
    .target(name: "CComparisons", path: "Tests/Fuzz/CComparisons"),
    .executableTarget(
      name: "Fuzzer", dependencies: ["CComparisons", "FuzzTargets"], path: "Tests/Fuzz/Fuzzer",
      swiftSettings: fuzzed + [.unsafeFlags(["-parse-as-library"])],
      linkerSettings: [.unsafeFlags(wrapped.flatMap { ["-Xlinker", "--wrap=__sanitizer_cov_\($0)"] })]),
  ]
}
