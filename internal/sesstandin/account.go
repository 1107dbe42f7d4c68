package sesstandin

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"strconv"
)

// serveAccount answers what is asked about the account. It pretends one in which everything is verified, and every configuration
// set there; faults change that.
func (s *Server) serveAccount(w http.ResponseWriter, r *http.Request, action string, form url.Values) {
	sc := s.faults.pick(action, "", nil)
	if !s.before(w, r, action, sc) {
		return
	}
	s.after(r, sc.fault)
	if sc.fault.Garbage {
		s.write(w, http.StatusOK, "text/xml", []byte(garbageBody))
		return
	}
	switch action {
	case actionGetSendingEnabled:
		s.writeResult(w, action, enabledResult{XMLName: resultName(action), Enabled: !sc.fault.Negative})
	case actionGetIdentities:
		s.writeResult(w, action, identities(form, !sc.fault.Negative))
	case actionDescribeSet:
		result := setResult{XMLName: resultName(action)}
		result.Set.Name = form.Get("ConfigurationSetName")
		s.writeResult(w, action, result)
	default:
		s.writeResult(w, action, s.quota())
	}
}

func resultName(action string) xml.Name { return xml.Name{Local: action + "Result"} }

type enabledResult struct {
	XMLName xml.Name
	Enabled bool
}

type setResult struct {
	XMLName xml.Name
	Set     struct{ Name string } `xml:"ConfigurationSet"`
}

type identitiesResult struct {
	XMLName xml.Name
	Entries []identity `xml:"VerificationAttributes>entry"`
}

type identity struct {
	Key    string `xml:"key"`
	Status string `xml:"value>VerificationStatus"`
}

// identities answers for each one that is asked for, which are form values Identities.member.1 and so on.
func identities(form url.Values, verified bool) identitiesResult {
	result := identitiesResult{XMLName: resultName(actionGetIdentities)}
	status := "Success"
	if !verified {
		status = "Pending"
	}
	for i := 1; form.Has("Identities.member." + strconv.Itoa(i)); i++ {
		result.Entries = append(result.Entries, identity{form.Get("Identities.member." + strconv.Itoa(i)), status})
	}
	return result
}
