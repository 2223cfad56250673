/** A part of a report: what one JSON document has to show. */
export interface Section {
  /** Its heading. */
  readonly title: string;
  /** HTML. */
  readonly body: readonly string[];
}

/** Makes the section of a document, or says that it is of another kind by undefined. */
export type SectionReader = (document: unknown) => Section | undefined;
