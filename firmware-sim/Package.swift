// swift-tools-version: 6.2
import PackageDescription

// Nested, because a build for Linux must not need BearSSL's headers. Built by `make firmware`.

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .strictMemorySafety(),
  .treatAllWarnings(as: .error),
  .treatWarning("EmbeddedRestrictions", as: .error),
  .enableExperimentalFeature("Lifetimes"),
]

let package = Package(
  name: "firmware-sim",
  products: [
    .library(name: "HoldfastBoard", targets: ["HoldfastBoard"]),
    .library(name: "HoldfastBearSSL", targets: ["HoldfastBearSSL"]),
  ],
  dependencies: [.package(name: "holdfast", path: "..")],
  targets: [
    // The board: QEMU's mps2-an386.
    .target(name: "CBoard"),
    .target(
      name: "HoldfastBoard",
      dependencies: [
        "CBoard", .product(name: "HoldfastCore", package: "holdfast"),
        .product(name: "HoldfastFirmware", package: "holdfast"),
      ],
      swiftSettings: strict),

    // The core's cryptography on it.
    .target(name: "CBearSSL"),
    .target(
      name: "HoldfastBearSSL",
      dependencies: ["CBearSSL", .product(name: "HoldfastCore", package: "holdfast")], swiftSettings: strict),

    // The device.
    .target(
      name: "Firmware",
      dependencies: [
        "HoldfastBoard", "HoldfastBearSSL", .product(name: "HoldfastCore", package: "holdfast"),
        .product(name: "HoldfastFirmware", package: "holdfast"),
      ],
      swiftSettings: strict),

    // An image that answers questions about both.
    .target(name: "CBoardTest", exclude: ["layouts.c"]),
    .target(
      name: "BoardTest",
      dependencies: [
        "HoldfastBoard", "HoldfastBearSSL", "CBearSSL", "CBoardTest",
        .product(name: "HoldfastCore", package: "holdfast"),
        .product(name: "HoldfastFirmware", package: "holdfast"),
      ],
      swiftSettings: strict),
  ]
)
