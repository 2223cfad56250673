import type { Origin } from './origin.js';

/** A section of a report, made from one JSON document. */
export interface Section {
  /** Its heading. */
  readonly title: string;
  /** HTML. The figures have their own titles and do not repeat the heading. */
  readonly body: readonly string[];
  /** Numbers to compare with another run of the same command. */
  readonly measures: readonly Measure[];
}

/** One number of a run. */
export interface Measure {
  /** Unique in its section, and the same in every run of the same command. */
  readonly name: string;
  /** In the unit of the document. */
  readonly value: number;
  /** The value as text, with its unit. */
  readonly text: string;
}

/** Makes the section of a document; undefined for documents of another kind. */
export type SectionReader = (document: unknown) => Section | undefined;

/** One JSON file of a folder. */
export interface ReportEntry {
  /** File name in the folder. */
  readonly file: string;
  /** Undefined for an unknown kind of document. */
  readonly section: Section | undefined;
  /** Command, date and machine of the document. */
  readonly origin: Origin;
}
