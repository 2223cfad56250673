/**
 * Calls between a command and the processes it starts: what a process offers is a table of methods, each with a schema for its
 * arguments. Messages cross Node's IPC channel as structured clones, so that bigints and buffers stay what they are.
 */

import { z } from 'zod';

/** One method of a process: how its arguments must look, and what it does. */
export interface Method<Args, Result> {
  /** Schema of its one argument. */
  readonly args: z.ZodType<Args>;
  /** What it throws, the caller's promise rejects with. */
  run(args: Args): Promise<Result> | Result;
}

/** What a process offers, by name. */
export type Service = Readonly<Record<string, Method<unknown, unknown>>>;

/** Argument of a method. */
export type ArgsOf<M> = M extends Method<infer Args, infer _> ? Args : never;
/** What a method's promise resolves with. */
export type ResultOf<M> = M extends Method<infer _, infer Result> ? Result : never;

/** A method that takes an object of this shape. */
export function method<Shape extends z.ZodRawShape, Result>(
  shape: Shape,
  run: (args: z.output<z.ZodObject<Shape>>) => Promise<Result> | Result,
): Method<z.output<z.ZodObject<Shape>>, Result> {
  return { args: z.strictObject(shape) as unknown as z.ZodType<z.output<z.ZodObject<Shape>>>, run };
}

/** Parses {@link Call}. */
export const callSchema = z.object({ id: z.number().int(), method: z.string(), args: z.unknown() });

/** Parses {@link Answer}. */
export const answerSchema = z.union([
  z.object({ id: z.number().int(), error: z.object({ message: z.string(), code: z.string().optional() }) }),
  z.object({ id: z.number().int(), result: z.unknown() }),
]);

/** A message to a process. */
export type Call = z.infer<typeof callSchema>;
/** What comes back, under the call's number. */
export type Answer = z.infer<typeof answerSchema>;
