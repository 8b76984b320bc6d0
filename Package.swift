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
  ]
)
