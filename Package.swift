// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),
  .treatAllWarnings(as: .error),
  .enableExperimentalFeature("Lifetimes"),
]

let package = Package(
  name: "holdfast",
  products: [
    .library(name: "HoldfastCore", targets: ["HoldfastCore"])
  ],
  targets: [
    .target(name: "CBarrier"),
    .target(
      name: "HoldfastCore", dependencies: ["CBarrier"],
      swiftSettings: strict + [.treatWarning("EmbeddedRestrictions", as: .error)]),
    .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    .target(
      name: "HoldfastOpenSSL", dependencies: ["HoldfastCore", "COpenSSL"], swiftSettings: strict),
    .target(
      name: "VerifyPathCheck", dependencies: ["HoldfastCore"], path: "Tests/VerifyPathCheck", exclude: ["run"],
      swiftSettings: strict),
    .target(name: "HoldfastJSON", swiftSettings: strict),
    .testTarget(
      name: "HoldfastCoreTests", dependencies: ["HoldfastCore", "HoldfastOpenSSL"], swiftSettings: strict),
    .testTarget(
      name: "HoldfastOpenSSLTests", dependencies: ["HoldfastOpenSSL", "HoldfastCore", "HoldfastJSON"],
      swiftSettings: strict),
    .testTarget(name: "HoldfastJSONTests", dependencies: ["HoldfastJSON"], swiftSettings: strict),
  ]
)
