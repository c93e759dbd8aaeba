"""Embeddings that sherpa-onnx computes with a tiny model, as lines "what = words".

check.py MODEL
"""

import sys

import numpy as np
import sherpa_onnx

RATE = 16000


def main():
    """Two sounds, one of them twice."""
    config = sherpa_onnx.SpeakerEmbeddingExtractorConfig(model=sys.argv[1], num_threads=2)
    extractor = sherpa_onnx.SpeakerEmbeddingExtractor(config)
    print("size =", extractor.dim)
    time = np.arange(RATE) / RATE
    for pitch in (120, 240, 120):
        stream = extractor.create_stream()
        sound = (0.3 * np.sin(2 * np.pi * pitch * time)).astype(np.float32)
        stream.accept_waveform(RATE, sound)
        stream.input_finished()
        print(f"pitch {pitch} =", *(f"{x:.6f}" for x in extractor.compute(stream)))
    print("end = 1")


if __name__ == "__main__":
    main()
