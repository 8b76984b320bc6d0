// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),
  .treatAllWarnings(as: .error),
  .enableExperimentalFeature("Lifetimes"),
  .enableExperimentalFeature("RawLayout"),
  .enableExperimentalFeature("BuiltinModule"),
]

let package = Package(
  name: "holdfast",
  products: [
    .executable(name: "holdfast", targets: ["holdfast"]),
    .library(name: "HoldfastCore", targets: ["HoldfastCore"]),
    .library(name: "HoldfastFirmware", targets: ["HoldfastFirmware"]),
    .library(name: "HoldfastReplay", targets: ["HoldfastReplay"]),
    .library(name: "HoldfastMeasurement", targets: ["HoldfastMeasurement"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
  ],
  targets: [
    // The core: standard library only, for Linux and as Embedded Swift.
    .target(name: "CBarrier"),
    .target(
      name: "HoldfastCore", dependencies: ["CBarrier"],
      swiftSettings: strict + [.treatWarning("EmbeddedRestrictions", as: .error)]),

    // The device for a microcontroller, without the board: standard library only, too.
    .target(
      name: "HoldfastFirmware", dependencies: ["HoldfastCore"],
      swiftSettings: strict + [.treatWarning("EmbeddedRestrictions", as: .error)]),

    // What the core is given on Linux.
    .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    .target(name: "COpenSSLStart", dependencies: ["COpenSSL"]),
    .target(
      name: "HoldfastOpenSSL", dependencies: ["HoldfastCore", "COpenSSL", "COpenSSLStart"], swiftSettings: strict),
    .target(name: "HoldfastJSON", swiftSettings: strict),
    .target(name: "HoldfastText", swiftSettings: strict),
    .target(
      name: "HoldfastKeys", dependencies: ["HoldfastCore", "HoldfastOpenSSL", "HoldfastJSON"], swiftSettings: strict),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .target(name: "HoldfastStorage", dependencies: ["CSQLite", "CHost"], swiftSettings: strict),
    .systemLibrary(name: "CBlueZ", pkgConfig: "bluez", providers: [.apt(["libbluetooth-dev"])]),
    .target(name: "HoldfastTransport", dependencies: ["CBlueZ"], swiftSettings: strict),

    // The attestation service and the backend, simulated.
    .target(
      name: "HoldfastIssuer",
      dependencies: ["HoldfastCore", "HoldfastJSON", "HoldfastKeys", "HoldfastOpenSSL", "HoldfastStorage"],
      swiftSettings: strict),

    // The device.
    .target(
      name: "HoldfastDevice",
      dependencies: [
        "HoldfastCore", "HoldfastFirmware", "HoldfastJSON", "HoldfastKeys", "HoldfastOpenSSL", "HoldfastStorage",
        "HoldfastTransport",
      ],
      swiftSettings: strict),

    // The person's side: one-time passwords and seals.
    .systemLibrary(name: "CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
    .systemLibrary(name: "CQREncode", pkgConfig: "libqrencode", providers: [.apt(["libqrencode-dev"])]),
    .target(
      name: "HoldfastAuthenticator",
      dependencies: ["HoldfastCore", "HoldfastJSON", "HoldfastOpenSSL", "HoldfastStorage", "CExpat", "CQREncode"],
      swiftSettings: strict),

    // The prover.
    .target(name: "CHost"),
    .plugin(
      name: "MeasurementProofKeyPlugin", capability: .buildTool(), dependencies: ["MeasurementProofKeyTool"]),
    .executableTarget(
      name: "MeasurementProofKeyTool", dependencies: ["HoldfastCore", "HoldfastKeys", "HoldfastOpenSSL"],
      swiftSettings: strict),
    .target(
      name: "HoldfastMeasurement", dependencies: ["HoldfastCore", "HoldfastOpenSSL", "CHost"],
      swiftSettings: strict, plugins: ["MeasurementProofKeyPlugin"]),

    // What keeps other processes out of this one.
    .target(name: "HoldfastHardening", dependencies: ["CHost"], swiftSettings: strict),

    // Test vectors: what any device makes of them, and files of them on Linux.
    .target(
      name: "HoldfastReplay", dependencies: ["HoldfastCore"],
      swiftSettings: strict + [.treatWarning("EmbeddedRestrictions", as: .error)]),
    .target(
      name: "HoldfastVectors", dependencies: ["HoldfastCore", "HoldfastOpenSSL", "HoldfastJSON", "HoldfastReplay"],
      swiftSettings: strict),

    // The version, from git.
    .plugin(name: "VersionPlugin", capability: .buildTool(), exclude: ["describe"]),
    .target(name: "HoldfastVersion", swiftSettings: strict, plugins: ["VersionPlugin"]),

    // The command line.
    .target(name: "CTrace"),
    .executableTarget(
      name: "holdfast",
      dependencies: [
        "HoldfastCore", "HoldfastOpenSSL", "HoldfastJSON", "HoldfastKeys", "HoldfastAuthenticator", "HoldfastDevice",
        "HoldfastFirmware", "HoldfastIssuer", "HoldfastHardening", "HoldfastMeasurement", "HoldfastStorage",
        "HoldfastText", "HoldfastTransport", "HoldfastVectors", "HoldfastVersion", "CTrace",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Histogram", package: "hdrhistogram-swift"),
      ],
      swiftSettings: strict),

    // Tests.
    .testTarget(
      name: "HoldfastCoreTests", dependencies: ["HoldfastCore", "HoldfastOpenSSL"], swiftSettings: strict),
    .testTarget(
      name: "HoldfastFirmwareTests",
      dependencies: [
        "HoldfastFirmware", "HoldfastCore", "HoldfastDevice", "HoldfastKeys", "HoldfastOpenSSL", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastOpenSSLTests", dependencies: ["HoldfastOpenSSL", "HoldfastCore", "HoldfastJSON"],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastIssuerTests",
      dependencies: [
        "HoldfastIssuer", "HoldfastOpenSSL", "HoldfastCore", "HoldfastJSON", "HoldfastKeys", "HoldfastStorage",
        "PowerCut", "TestSupport",
      ],
      exclude: ["Fixtures"], swiftSettings: strict),
    .testTarget(
      name: "HoldfastAuthenticatorTests",
      dependencies: [
        "HoldfastAuthenticator", "HoldfastCore", "HoldfastOpenSSL", "HoldfastStorage", "PowerCut", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(name: "HoldfastJSONTests", dependencies: ["HoldfastJSON"], swiftSettings: strict),
    .testTarget(name: "HoldfastTextTests", dependencies: ["HoldfastText"], swiftSettings: strict),
    .testTarget(
      name: "HoldfastDeviceTests",
      dependencies: [
        "HoldfastDevice", "HoldfastCore", "HoldfastFirmware", "HoldfastJSON", "HoldfastKeys", "HoldfastOpenSSL",
        "HoldfastStorage", "HoldfastTransport", "PowerCut", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastKeysTests", dependencies: ["HoldfastKeys", "HoldfastCore", "HoldfastJSON", "HoldfastOpenSSL"],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastStorageTests", dependencies: ["HoldfastStorage", "PowerCut", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "HoldfastTransportTests", dependencies: ["HoldfastTransport", "CBlueZ", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastCommandLineTests",
      dependencies: [
        "holdfast", "HoldfastJSON", .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HoldfastVectorsTests",
      dependencies: ["HoldfastVectors", "HoldfastCore", "HoldfastOpenSSL", "HoldfastJSON"], swiftSettings: strict),
    .testTarget(name: "HoldfastHardeningTests", dependencies: ["HoldfastHardening"], swiftSettings: strict),
    .testTarget(
      name: "HoldfastMeasurementTests",
      dependencies: [
        "HoldfastMeasurement", "HoldfastCore", "HoldfastOpenSSL", "MeasurementProbe", "ReadmeProver", "PowerCut",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "MeasurementProofKeyToolTests",
      dependencies: ["MeasurementProofKeyTool", "HoldfastCore", "HoldfastKeys", "HoldfastOpenSSL"],
      swiftSettings: strict),
    .target(
      name: "VerifyPathCheck", dependencies: ["HoldfastCore", "HoldfastFirmware"], path: "Tests/VerifyPathCheck",
      exclude: ["run"],
      swiftSettings: strict),
    .target(
      name: "TestSupport", dependencies: ["HoldfastCore", "HoldfastFirmware", "HoldfastOpenSSL"],
      path: "Tests/TestSupport", swiftSettings: strict),
    .target(name: "CPowerCut", path: "Tests/CPowerCut"),
    .target(name: "PowerCut", dependencies: ["CPowerCut"], path: "Tests/PowerCut", swiftSettings: strict),
    .target(name: "CDisturbance", path: "Tests/CDisturbance"),
    .executableTarget(
      name: "MeasurementProbe",
      dependencies: [
        "HoldfastMeasurement", "HoldfastHardening", "HoldfastCore", "HoldfastOpenSSL", "CDisturbance",
      ],
      path: "Tests/MeasurementProbe", swiftSettings: strict),
    .executableTarget(
      name: "DeviceTwin",
      dependencies: ["HoldfastDevice", "HoldfastCore", "HoldfastFirmware", "HoldfastOpenSSL", "HoldfastStorage"],
      path: "Tests/DeviceTwin", swiftSettings: strict),
    .executableTarget(
      name: "ReadmeProver", dependencies: ["HoldfastMeasurement"], path: "Tests/ReadmeProver", swiftSettings: strict),
  ]
)

// For `make fuzz` alone: libFuzzer has the main function, and would have every other program's place too.
if Context.environment["HOLDFAST_FUZZ"] != nil {
  let fuzzed = [
    "CBarrier", "HoldfastCore", "HoldfastFirmware", "COpenSSL", "COpenSSLStart", "HoldfastOpenSSL", "TestSupport",
  ]
  (package.products, package.dependencies) = ([], [])
  package.targets.removeAll { !fuzzed.contains($0.name) }
  package.targets.append(.target(name: "Fuzzing", path: "Tests/Fuzz/Support", swiftSettings: strict))
  // One thread, which calls one function: its globals need no isolation.
  let settings: [SwiftSetting] = [.swiftLanguageMode(.v5), .unsafeFlags(["-parse-as-library"])]
  for (name, folder) in [("FuzzLine", "Line"), ("FuzzFlash", "Flash")] {
    package.targets.append(
      .executableTarget(
        name: name, dependencies: ["Fuzzing", "HoldfastCore", "HoldfastFirmware", "HoldfastOpenSSL", "TestSupport"],
        path: "Tests/Fuzz/\(folder)", swiftSettings: settings))
  }
}
