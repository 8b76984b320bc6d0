// swift-tools-version: 6.2
import PackageDescription

// Nested, because a build for Linux must not need BearSSL's headers. Built by `make firmware`.

// What changes the code has to be said to the Makefile's device.o, too.
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

    // Images that answer questions: about board and cryptography, and about test vectors.
    .target(name: "CBoardTest", exclude: ["layouts.c"]),
    .target(name: "BoardQuestions", dependencies: ["CBoardTest", "HoldfastBoard"], swiftSettings: strict),
    .target(
      name: "BoardTest",
      dependencies: [
        "BoardQuestions", "HoldfastBoard", "HoldfastBearSSL", "CBearSSL", "CBoardTest",
        .product(name: "HoldfastCore", package: "holdfast"),
        .product(name: "HoldfastFirmware", package: "holdfast"),
      ],
      swiftSettings: strict),
    .target(
      name: "VectorTest",
      dependencies: [
        "BoardQuestions", "HoldfastBoard", "HoldfastBearSSL", .product(name: "HoldfastCore", package: "holdfast"),
        .product(name: "HoldfastReplay", package: "holdfast"),
      ],
      swiftSettings: strict),
  ]
)
