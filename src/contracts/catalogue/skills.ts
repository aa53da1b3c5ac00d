import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { type BktParameters, manualBounds, manualForgetBounds } from '../../domain/base/bkt-parameters.js';
import { round4, sections } from '../../domain/base/common.js';
import {
  defaultSkillSetting,
  findParameterProblem,
  type SkillSetting,
} from '../../domain/catalogue/catalogue.js';
import { toSnakeCase } from '../answers/export-record.js';
import { noControls } from '../schema/ids.js';
import { optionalNullable, validate, validationError } from '../schema/validate.js';

/** Smaller weights could vanish in sums. */
export const weightBounds = { low: 1e-6, high: 1000 } as const;

const Sourced = Type.Object({ source: optionalNullable(Type.Enum(['default', 'fitted', 'manual'])) });

const SkillBody = Type.Object({
  name: optionalNullable(
    Type.String({
      minLength: 1,
      maxLength: 200,
      pattern: noControls,
      description: 'Display name.',
    }),
  ),
  section: optionalNullable(
    Type.Enum(sections, { description: 'If absent, the skill counts half in each section.' }),
  ),
  weight: optionalNullable(
    Type.Number({
      minimum: weightBounds.low,
      maximum: weightBounds.high,
      description: 'Weight within the section, 1 by default.',
    }),
  ),
  /** Ignores default and fitted parameters: a response can be sent back. */
  parameters: optionalNullable(Sourced),
});
const skillBodyCheck = Compile(SkillBody);

const Parameter = Type.Number({ minimum: manualBounds.low, maximum: manualBounds.high });
export const ManualParameters = Type.Object({
  parameters: Type.Object({
    ...{ p_init: Parameter, p_learn: Parameter, p_guess: Parameter, p_slip: Parameter },
    p_forget: Type.Optional(
      Type.Number({
        minimum: manualForgetBounds.low,
        maximum: manualForgetBounds.high,
        description: 'Probability of losing mastery at an answer, 0 by default.',
      }),
    ),
  }),
});
const manualCheck = Compile(ManualParameters);

export const SkillRequest = Type.Object(
  {
    ...SkillBody.properties,
    parameters: optionalNullable(Type.Union([ManualParameters.properties.parameters, Sourced])),
  },
  { examples: [{ name: 'Linear equations', section: 'math', weight: 2 }] },
);

/** @throws ApiError INVALID_REQUEST */
export function parseSkillBody(body: unknown): SkillSetting {
  const { name, section, weight, parameters } = validate(skillBodyCheck, body, 'skill');
  const source = parameters?.source;
  const isManual =
    parameters !== undefined && parameters !== null && source !== 'default' && source !== 'fitted';
  return {
    name: name ?? null,
    section: section ?? null,
    weight: weight ?? defaultSkillSetting.weight,
    parameters: isManual ? parseParameters(body) : null,
  };
}

function parseParameters(body: unknown): BktParameters {
  const parameters = roundParameters(validate(manualCheck, body, 'skill').parameters);
  const found = findParameterProblem(parameters);
  if (found === null) return parameters;
  throw validationError('skill', {
    path: `parameters/${toSnakeCase(found.parameter)}`,
    message: found.message,
  });
}

/** As in responses: a skill that is read and written back stays the same. */
const roundParameters = (sent: Static<typeof ManualParameters>['parameters']): BktParameters => ({
  pInit: round4(sent.p_init),
  pLearn: round4(sent.p_learn),
  pGuess: round4(sent.p_guess),
  pSlip: round4(sent.p_slip),
  pForget: round4(sent.p_forget ?? 0),
});
