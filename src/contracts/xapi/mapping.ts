import Type, { type Static, type TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { maxQuestionSkills } from '../answers/events.js';
import { Id } from '../schema/ids.js';
import { nullable, optionalNullable, validate } from '../schema/validate.js';
import { Iri, iriRecord } from './statement.js';

const maxSkills = 10_000;
export const maxMappingValues = maxSkills + 10;

export const XapiMapping = Type.Object({
  home_page: nullable(Iri),
  skill_from: Type.Union([Type.Enum(['parent', 'grouping', 'category']), Type.Object({ extension: Iri })]),
  skills: Type.Refine(
    iriRecord(nullable(Id)),
    (skills) => Object.keys(skills).length <= maxSkills,
    () => `must have at most ${maxSkills} entries`,
  ),
  success_threshold: nullable(Type.Number({ minimum: 0, maximum: 1 })),
  unmapped: Type.Enum(['reject', 'ignore'], {
    description: `Handling of statements without a mapped skill, or with more than ${maxQuestionSkills}.`,
  }),
});
export type XapiMapping = Static<typeof XapiMapping>;
export const xapiMappingCheck = Compile(XapiMapping);
/** Null and missing fields get defaults. */
export const MappingRequest = Type.Object(
  Object.fromEntries(
    Object.entries(XapiMapping.properties).map(([name, schema]) => [
      name,
      optionalNullable(schema as TSchema),
    ]),
  ),
  {
    examples: [
      { home_page: 'https://lms.example.org', skills: { 'https://lms.example.org/skills/7': 'algebra' } },
    ],
  },
);
const bodyCheck = Compile(Type.Record(Type.String(), Type.Unknown()));

export const defaultMapping: XapiMapping = {
  ...{ home_page: null, skill_from: 'parent', skills: {}, success_threshold: null, unmapped: 'reject' },
};

/** @throws ApiError INVALID_REQUEST */
export function parseMapping(body: unknown): XapiMapping {
  const set = Object.entries(validate(bodyCheck, body, 'xAPI mapping')).filter(
    ([name, value]) => Object.hasOwn(defaultMapping, name) && value !== null,
  );
  return validate(xapiMappingCheck, { ...defaultMapping, ...Object.fromEntries(set) }, 'xAPI mapping');
}
