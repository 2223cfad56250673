import { InvalidArgumentError, Option } from 'commander';
import { NS_PER_S, nearestName, parseCount, parseDurationNs, parseRateBps, parseSizeBytes } from 'rocev2/internal/core';
import { MESSAGE_BYTES_MAX } from 'rocev2/internal/memory';
import { IpAddress, PATH_MTUS } from 'rocev2/internal/packet';
import { z } from 'zod';
import { parsedText } from './schema/parsed-text.js';

function parser<T>(schema: z.ZodType<T>): (text: string) => T {
  return (text) => {
    const result = schema.safeParse(text);
    if (!result.success) throw new InvalidArgumentError(`${result.error.issues[0].message}.`);
    return result.data;
  };
}

/** An option with a text format of its own; `parse` throws RoceError. */
export function textOption<T>(parse: (text: string) => T): (text: string) => T {
  return parser(parsedText(parse));
}

const count = parsedText((text) => parseCount(text));

/** `4096`, `64KiB` -> bytes. */
export const sizeOption = parser(parsedText(parseSizeBytes));
/** A size of at most one message (IBTA vol. 1 §9.7.7: 2^31 bytes). */
export const messageSizeOption = parser(
  parsedText(parseSizeBytes).refine((bytes) => bytes <= MESSAGE_BYTES_MAX, {
    error: 'a message can have at most 2GiB',
  }),
);
/** `25Gbps` -> bits per second. */
export const rateOption = parser(parsedText(parseRateBps));
/** `67us` -> nanoseconds. */
export const durationOption = parser(parsedText(parseDurationNs));
/** A duration above 0. */
export const positiveDurationOption = parser(
  parsedText(parseDurationNs).refine((ns) => ns > 0, { error: 'the time must be above 0' }),
);
/** A time above 0, in seconds unless a unit is given: `3`, `3s`, `500ms` -> nanoseconds. */
export const secondsOption = (text: string): number =>
  positiveDurationOption(/^\d+(\.\d+)?$/.test(text) ? `${text}s` : text);
/** The same, of at most `maxSeconds`. */
export const secondsUpToOption =
  (maxSeconds: number) =>
  (text: string): number => {
    const ns = secondsOption(text);
    if (ns > maxSeconds * NS_PER_S) throw new InvalidArgumentError(`the time can be at most ${maxSeconds}s.`);
    return ns;
  };
/** A number above 0, with or without a fraction. */
export const positiveNumberOption = parser(
  z
    .string()
    .regex(/^\d+(\.\d+)?$/, { error: 'write a number, such as 1000 or 9.5' })
    .transform(Number)
    .refine((value) => value > 0, { error: 'the number must be above 0' }),
);
/** A whole number of at least 1. */
export const countOption = parser(parsedText((text) => parseCount(text, 1)));
/** A whole number in [min, max]. */
export const rangeOption = (min: number, max: number) => parser(parsedText((text) => parseCount(text, min, max)));
/** TCP or UDP port. */
export const portOption = rangeOption(1, 65535);
/** TCP or UDP port, or 0, with which the system chooses. */
export const portOrAnyOption = rangeOption(0, 65535);
/** Queue pair number, decimal or `0x...`. */
export const qpnOption = rangeOption(0, 0xffffff);
/** A literal IPv4 or IPv6 address. */
export const addressOption = parser(parsedText((text) => IpAddress.parse(text)));
/** One of {@link PATH_MTUS}. */
export const mtuOption = Object.assign(
  parser(count.pipe(z.literal([...PATH_MTUS], { error: `the path MTU is one of ${PATH_MTUS.join(', ')}` }))),
  { choices: PATH_MTUS.map(String) },
);

/** An option whose default is text, which --help shows as a user would type it. */
export function optionWithDefault(
  flags: string,
  description: string,
  parse: (text: string) => unknown,
  text: string,
): Option {
  return new Option(flags, description).argParser(parse).default(parse(text), text);
}

/** One of a few words. The parser has the words as a property, for shell completion. */
export function choiceOption<const T extends string>(
  choices: readonly T[],
): ((text: string) => T) & { readonly choices: readonly T[] } {
  const words = z.enum(choices as readonly [T, ...T[]], {
    error: ({ input }) => {
      const meant = nearestName(String(input), choices);
      const question = meant === undefined ? '' : ` (did you mean ${meant}?)`;
      return `it is one of ${choices.join(', ')}${question}`;
    },
  });
  return Object.assign(parser(words as z.ZodType<T>), { choices });
}

/** A comma-separated list of values, each read by `parse`. */
export function listOption<T>(parse: (text: string) => T): (text: string) => T[] {
  return (text) => [...new Set(text.split(',').map((item) => parse(item.trim())))];
}

/** `--allow-host NAME`, which may be repeated. */
export function allowHostOption(): Option {
  return new Option(
    '--allow-host <name>',
    'also accept HTTP requests for this host name, besides addresses and localhost; may be repeated',
  ).argParser((name: string, before: readonly string[] = []) => [...before, name]);
}
