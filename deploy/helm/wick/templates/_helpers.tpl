{{- define "wick.name" -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "wick.selector" -}}
app.kubernetes.io/name: wick
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "wick.labels" -}}
{{ include "wick.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "wick.secret" -}}
{{- .Values.existingSecret | default (include "wick.name" .) -}}
{{- end -}}

{{/* The configuration: what the chart knows, with the values' own on top. */}}
{{- define "wick.config" -}}
{{- $base := dict "listen" ":9425" "listen_token_file" "/etc/wick/secrets/token" "kubernetes" (dict "mode" "api") -}}
{{- if .Values.spoolPath -}}
{{- $_ := set $base "spool" (dict "dir" "/var/lib/wick") -}}
{{- end -}}
{{- mergeOverwrite $base (deepCopy .Values.config) | toYaml -}}
{{- end -}}

{{/* The token: the value's, else the one of the last release, else a new one. */}}
{{- define "wick.token" -}}
{{- $old := lookup "v1" "Secret" .Release.Namespace (include "wick.name" .) -}}
{{- if .Values.token -}}
{{- .Values.token | b64enc -}}
{{- else if and $old (index ($old.data | default dict) "token") -}}
{{- index $old.data "token" -}}
{{- else -}}
{{- randAlphaNum 48 | b64enc -}}
{{- end -}}
{{- end -}}
