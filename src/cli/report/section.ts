/** A part of a report: what one JSON document has to show. */
export interface Section {
  /** Its heading. */
  readonly title: string;
  /** HTML; the figures say what they show and do not repeat the heading. */
  readonly body: readonly string[];
  /** Numbers that can be compared with those of another run of the same command. */
  readonly measures: readonly Measure[];
}

/** One number of a run. */
export interface Measure {
  /** Unique in its section, and the same in every run of the same command. */
  readonly name: string;
  /** In the unit of the document. */
  readonly value: number;
  /** The value as people read it, with its unit. */
  readonly text: string;
}

/** Makes the section of a document, or says that it is of another kind by undefined. */
export type SectionReader = (document: unknown) => Section | undefined;
