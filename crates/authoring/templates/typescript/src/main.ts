// Serves the function: node dist/main.js --insecure.
import { serve } from '@crossplane-org/function-sdk-typescript';
import { compose } from './fn.js';

serve(compose);
