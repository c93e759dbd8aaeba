"""Tokens that onnxruntime-genai makes with a tiny model, as lines "what = words".

check.py MODEL_FOLDER
"""

import sys

import numpy as np
import onnxruntime_genai as og


def generate(model, prompts, **options):
    """Tokens for prompts of equal lengths, one list each."""
    parameters = og.GeneratorParams(model)
    parameters.set_search_options(max_length=32, batch_size=len(prompts), **options)
    generator = og.Generator(model, parameters)
    generator.append_tokens(np.array(prompts, np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    return [list(generator.get_sequence(i)) for i in range(len(prompts))], generator


def main():
    """Greedy, in a batch, with beams, and with the scores of the last token."""
    model = og.Model(sys.argv[1])
    (tokens,), generator = generate(model, [[1, 5, 9, 17]])
    print("greedy =", *tokens)
    print("scores =", *(f"{score:.5f}" for score in generator.get_output("logits").ravel()[-16:]))
    for i, tokens in enumerate(generate(model, [[1, 2, 3], [4, 5, 6]])[0]):
        print(f"batch {i} =", *tokens)
    (tokens,), _ = generate(model, [[1, 5, 9]], num_beams=3)
    print("beams =", *tokens)
    (tokens,), _ = generate(model, [[1, 5, 9]], repetition_penalty=1.3, min_length=20)
    print("penalty =", *tokens)
    parameters = og.GeneratorParams(model)
    parameters.set_search_options(max_length=32)
    generator = og.Generator(model, parameters)
    generator.append_tokens(np.array([[1, 2, 3, 4]], np.int32))
    for _ in range(6):
        generator.generate_next_token()
    generator.rewind_to(5)
    generator.append_tokens(np.array([[7, 8]], np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    print("rewound =", *generator.get_sequence(0))
    del generator, model
    print("end = 1")


if __name__ == "__main__":
    main()
