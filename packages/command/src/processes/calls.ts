/**
 * Calls between a command and its child processes: a table of methods with schemas, over Node's IPC channel as
 * structured clones (bigints and buffers survive).
 */

import { z } from 'zod';

export interface ProcessMethod<Args, Result> {
  readonly args: z.ZodType<Args>;
  run(args: Args): Promise<Result> | Result;
}

export type ProcessService = Readonly<Record<string, ProcessMethod<unknown, unknown>>>;

export type ArgsOf<M> = M extends ProcessMethod<infer Args, infer _> ? Args : never;
export type ResultOf<M> = M extends ProcessMethod<infer _, infer Result> ? Result : never;

export function method<Shape extends z.ZodRawShape, Result>(
  shape: Shape,
  run: (args: z.output<z.ZodObject<Shape>>) => Promise<Result> | Result,
): ProcessMethod<z.output<z.ZodObject<Shape>>, Result> {
  return { args: z.strictObject(shape) as unknown as z.ZodType<z.output<z.ZodObject<Shape>>>, run };
}

export const callSchema = z.object({ id: z.number().int(), method: z.string(), args: z.unknown() });

export const answerSchema = z.union([
  z.object({ id: z.number().int(), error: z.object({ message: z.string(), code: z.string().optional() }) }),
  z.object({ id: z.number().int(), result: z.unknown() }),
]);

export type Call = z.infer<typeof callSchema>;
export type CallAnswer = z.infer<typeof answerSchema>;
