import Type from 'typebox';
import { nullable } from '../schema/validate.js';
import { Count, Day, Time } from './shared-schemas.js';

export const Settings = Type.Object({
  time_zone: Type.String({ description: 'IANA name.' }),
  today: Day,
  time_zone_change: nullable(
    Type.Object(
      {
        status: Type.Enum(['running', 'done']),
        requested_at: Time,
        done_at: nullable(Time),
        learners: Count,
      },
      { description: 'Last change; null: the zone was never set. `learners`: moved to the new days so far.' },
    ),
  ),
});
