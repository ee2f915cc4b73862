"""The names of the UEA archive's sets, and how many series there are in those of the papers."""

from __future__ import annotations

from typing import Literal

UeaSet = Literal[
    "ArticularyWordRecognition",
    "AtrialFibrillation",
    "BasicMotions",
    "CharacterTrajectories",
    "Cricket",
    "DuckDuckGeese",
    "EigenWorms",
    "Epilepsy",
    "ERing",
    "EthanolConcentration",
    "FaceDetection",
    "FingerMovements",
    "HandMovementDirection",
    "Handwriting",
    "Heartbeat",
    "InsectWingbeat",
    "JapaneseVowels",
    "Libras",
    "LSST",
    "MotorImagery",
    "NATOPS",
    "PEMS-SF",
    "PenDigits",
    "PhonemeSpectra",
    "RacketSports",
    "SelfRegulationSCP1",
    "SelfRegulationSCP2",
    "SpokenArabicDigits",
    "StandWalkJump",
    "UWaveGestureLibrary",
]

SIZES: dict[str, tuple[int, int]] = {
    "BasicMotions": (40, 40),
    "EthanolConcentration": (261, 263),
    "FaceDetection": (5890, 3524),
    "Handwriting": (150, 850),
    "Heartbeat": (204, 205),
    "JapaneseVowels": (270, 370),
    "PEMS-SF": (267, 173),
    "SelfRegulationSCP1": (268, 293),
    "SelfRegulationSCP2": (200, 180),
    "SpokenArabicDigits": (6599, 2199),
    "UWaveGestureLibrary": (120, 320),
}
"""Training and test series of the ten sets of Primal-Attention's Table 1, and of the other that comes with aeon.

A file with fewer is cut short, which nothing in it would say.
"""
