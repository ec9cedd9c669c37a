{{- define "transom.labels" }}
app.kubernetes.io/name: transom
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: crossplane
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.customLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- define "transom.selector" }}
app.kubernetes.io/name: transom
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "transom.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}transom{{- else -}}{{ .Values.serviceAccount.name }}{{- end -}}
{{- end }}
{{- define "transom.image" -}}
{{- if .Values.image.ignoreTag -}}
{{ .Values.image.repository }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end -}}
{{- end }}
